"""Paths for kubelets, monitoring and routers: probes, metrics, confirmations of a drain, glossaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.registry import Collector
from starlette.routing import BaseRoute

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, START_CACHE_PATH, STARTUP_PATH
from dragoman_contract.routing import DRAINED_PATH, HELD_GLOSSARIES_PATH, ROUTER_HEADER
from dragoman_http.exchange import Exchange
from dragoman_protocols.errors import BodyTooLargeError, EngineDeadError
from dragoman_protocols.glossaries.packed import MAX_PACKED_BYTES
from dragoman_protocols.messages import Answer, json_answer
from dragoman_protocols.routes import Path
from dragoman_service.core.admission import Admission
from dragoman_service.engine.protocol import Engine, Phase
from dragoman_service.http.glossaries import AttachedGlossaries
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.routes import Defect, Handler, PodRoute, only_with
from dragoman_service.http.start_cache import StartCacheExchange


@dataclass(frozen=True)
class Tolerance:
    """When probes fail.

    Args:
        stall_timeout_s: Seconds without an engine step, with work to do, after which the pod is not alive.
        unready_when_overloaded: Whether the pod is unready while it refuses requests because of overload.
    """

    stall_timeout_s: float
    unready_when_overloaded: bool = False


def liveness_failure(phase: Phase, stalled_s: float, tolerance: Tolerance) -> str | None:
    """Why only a restart helps; None if none is needed."""
    if phase is Phase.FAILED:
        return "the engine is gone"
    if stalled_s > tolerance.stall_timeout_s:
        return f"the engine has had work for {stalled_s:.0f} s and has done none of it"
    return None


def readiness_failure(phase: Phase, stalled_s: float, full: bool, tolerance: Tolerance) -> str | None:
    """Why no requests should be sent here; None if they should."""
    failure = liveness_failure(phase, stalled_s, tolerance)
    if failure is not None:
        return failure
    if phase is Phase.LEAVING:
        return "this replica is about to leave"
    if phase is not Phase.READY:
        return f"the phase is {phase}"
    if full and tolerance.unready_when_overloaded:
        return "this replica has as much as it may take on"
    return None


class Exposition(Collector):
    """A registry without the families whose names `hidden` returns at each scrape: those that would be wrong."""

    def __init__(self, registry: Collector, hidden: Callable[[], frozenset[str]]) -> None:
        self._registry = registry
        self._hidden = hidden

    def collect(self) -> Iterable[Metric]:
        """The families that are exported."""
        hidden = self._hidden()
        return (family for family in self._registry.collect() if family.name not in hidden)


class Control:
    """Answers on the paths of the cluster, in any phase; they are not in the OpenAPI document.

    Args:
        lifecycle: The pod's phase.
        engine: Checked by the liveness probe.
        admission: Full, where requests are refused because of overload.
        registry: Of what `/metrics` exports.
        tolerance: When probes fail.
        glossaries: Those that routers attach.
        start_cache: Serves the start cache.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        engine: Engine,
        admission: Admission,
        registry: Collector,
        tolerance: Tolerance,
        glossaries: AttachedGlossaries,
        start_cache: StartCacheExchange,
    ) -> None:
        self._lifecycle, self._engine, self._admission = lifecycle, engine, admission
        self._registry, self._tolerance = registry, tolerance
        self._glossaries, self._start_cache = glossaries, start_cache

    def routes(self, defect: Defect) -> list[BaseRoute]:
        """The routes, each with one method."""
        handlers: tuple[tuple[str, str, Handler], ...] = (
            ("GET", LIVE_PATH, self.live),
            ("GET", READY_PATH, self.ready),
            ("GET", STARTUP_PATH, self.startup),
            ("GET", METRICS_PATH, self.metrics),
            ("POST", DRAINED_PATH, self.drained),
            ("GET", START_CACHE_PATH + "{key}", self._start_cache.serve),
            ("PUT", HELD_GLOSSARIES_PATH + "{revision}", self.attach),
        )
        return [
            PodRoute(Path(path), only_with(method, handler), defect) for method, path, handler in handlers
        ]

    async def live(self, _: Exchange) -> Answer:
        """503 once only a restart helps: the engine is dead, or stuck."""
        lifecycle = self._lifecycle
        if lifecycle.phase in (Phase.READY, Phase.LEAVING):
            try:
                await self._engine.check()
            except EngineDeadError:
                lifecycle.fail()
        return self._state(liveness_failure(lifecycle.phase, self._stalled_s, self._tolerance))

    async def ready(self, _: Exchange) -> Answer:
        """200 from the end of the model's load to SIGTERM."""
        phase = self._lifecycle.phase
        full = phase is Phase.READY and self._admission.full
        return self._state(readiness_failure(phase, self._stalled_s, full, self._tolerance))

    async def startup(self, _: Exchange) -> Answer:
        """503 with the phase and its progress until the model is loaded."""
        return self._state(None if self._lifecycle.started else f"the phase is {self._lifecycle.phase}")

    async def metrics(self, _: Exchange) -> Answer:
        """The engine's metrics and the pod's, as Prometheus reads them."""
        return Answer(200, generate_latest(self._registry), (("Content-Type", CONTENT_TYPE_LATEST),))

    async def drained(self, exchange: Exchange) -> Answer:
        """A router confirms that it sends nothing new."""
        name = exchange.request.text_header(ROUTER_HEADER)
        if not name:
            return _bad_request(exchange, f"send {ROUTER_HEADER}: it names the router that confirms")
        self._lifecycle.drained(name)
        return Answer(204, b"")

    async def attach(self, exchange: Exchange) -> Answer:
        """A router attaches a glossary. From another client it is harmless: the revision is the hash of the content."""
        try:
            content = await exchange.read_body(MAX_PACKED_BYTES)
            await self._glossaries.put(exchange.request.variables["revision"], content)
        except BodyTooLargeError as error:
            return _bad_request(exchange, str(error), 413)
        except ValueError as error:
            return _bad_request(exchange, f"no glossary of this revision: {error}")
        return Answer(204, b"")

    @property
    def _stalled_s(self) -> float:
        return self._engine.stall_detector.stalled_s

    def _state(self, why_not: str | None) -> Answer:
        lifecycle = self._lifecycle
        document = {
            "phase": lifecycle.progress.phase,
            "progress": lifecycle.progress.share_ratio,
            "elapsed_s": round(lifecycle.start_s, 1),
            "phases_s": lifecycle.phases_s,
            "start_cache": self._start_cache.result.outcome,
            "in_flight": lifecycle.in_flight,
            "reason": why_not,
        }
        return json_answer(document, 200 if why_not is None else 503)


def _bad_request(exchange: Exchange, message: str, status: int = 400) -> Answer:
    where = f"{exchange.request.method} {exchange.request.path}"
    return json_answer({"error": {"code": "bad_request", "message": f"{where}: {message}"}}, status)
