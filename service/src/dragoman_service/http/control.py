"""Paths for kubelets, monitoring and routers: probes, metrics, confirmations of a drain, glossaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.registry import Collector

from dragoman_contract.glossaries import MAX_PACKED_BYTES
from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, STARTUP_PATH
from dragoman_contract.routing import DRAINED_PATH, HELD_GLOSSARIES_PATH, ROUTER_HEADER
from dragoman_contract.serving import Receive
from dragoman_protocols.api import Answer, Request, json_answer
from dragoman_protocols.errors import (
    BodyTooLargeError,
    EngineDeadError,
    MethodNotAllowedError,
    UnknownPathError,
)
from dragoman_service.core.admission import Admission
from dragoman_service.engine.protocol import Engine, Phase
from dragoman_service.http.answering import read_body
from dragoman_service.http.glossaries import AttachedGlossaries
from dragoman_service.http.lifecycle import Lifecycle

PROBES = frozenset({LIVE_PATH, READY_PATH, STARTUP_PATH})


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
    """Answers requests of the cluster, in any phase; they are not in the OpenAPI document.

    Args:
        registry: Of what `/metrics` exports.
        glossaries: Those that routers attach.
    """

    def __init__(
        self,
        lifecycle: Lifecycle,
        engine: Engine,
        admission: Admission,
        registry: Collector,
        tolerance: Tolerance,
        glossaries: AttachedGlossaries,
    ) -> None:
        self._lifecycle, self._engine, self._admission = lifecycle, engine, admission
        self._registry, self._tolerance, self._glossaries = registry, tolerance, glossaries

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """The answer to a request that is for no API.

        Raises:
            UnknownPathError: There is no such path, or not with this method.
        """
        path = request.path
        if path in PROBES:
            _check_method(request, "GET")
            return self._state(await self._failure(path))
        if path == METRICS_PATH:
            _check_method(request, "GET")
            return Answer(200, generate_latest(self._registry), (("Content-Type", CONTENT_TYPE_LATEST),))
        if path == DRAINED_PATH:
            _check_method(request, "POST")
            return self._drained(request)
        revision = path.removeprefix(HELD_GLOSSARIES_PATH)
        if revision != path and revision and "/" not in revision:
            _check_method(request, "PUT")
            return await self._attach(request, revision, receive)
        raise UnknownPathError(f"nothing here at {path[:100]!r}")

    async def _failure(self, path: str) -> str | None:
        """Why a probe fails: at the start until the model is loaded; None if it does not."""
        lifecycle, stalls = self._lifecycle, self._engine.stall_detector
        if path == STARTUP_PATH:
            return None if lifecycle.started else f"the phase is {lifecycle.phase}"
        if path == READY_PATH:
            full = lifecycle.phase is Phase.READY and self._admission.full
            return readiness_failure(lifecycle.phase, stalls.stalled_s, full, self._tolerance)
        if lifecycle.phase in (Phase.READY, Phase.LEAVING):
            try:
                await self._engine.check()
            except EngineDeadError:
                lifecycle.fail()
        return liveness_failure(lifecycle.phase, stalls.stalled_s, self._tolerance)

    def _drained(self, request: Request) -> Answer:
        """A router confirms that it sends nothing new."""
        name = request.text_header(ROUTER_HEADER)
        if not name:
            return _bad_request(request, f"send {ROUTER_HEADER}: it names the router that confirms")
        self._lifecycle.drained(name)
        return NO_CONTENT

    async def _attach(self, request: Request, revision: str, receive: Receive) -> Answer:
        """A router attaches a glossary. From another client it is harmless: the revision is the hash of the content."""
        try:
            await self._glossaries.put(revision, await read_body(receive, MAX_PACKED_BYTES))
        except BodyTooLargeError as error:
            return _bad_request(request, str(error), 413)
        except ValueError as error:
            return _bad_request(request, f"no glossary of this revision: {error}")
        return NO_CONTENT

    def _state(self, why_not: str | None) -> Answer:
        progress = self._lifecycle.progress
        return json_answer(
            {
                "phase": progress.phase,
                "progress": progress.share_ratio,
                "elapsed_s": round(self._lifecycle.start_s, 1),
                "in_flight": self._lifecycle.in_flight,
                "reason": why_not,
            },
            200 if why_not is None else 503,
        )


NO_CONTENT = Answer(204, b"")


def _check_method(request: Request, method: str) -> None:
    if request.method != method:
        here = f"nothing here at {request.path[:100]!r} with {request.method}: use {method}"
        raise MethodNotAllowedError(here, (method,))


def _bad_request(request: Request, message: str, status: int = 400) -> Answer:
    where = f"{request.method} {request.path}"
    return json_answer({"error": {"code": "bad_request", "message": f"{where}: {message}"}}, status)
