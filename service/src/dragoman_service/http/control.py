"""Paths for kubelets, monitoring and routers: probes, metrics, confirmations of a drain, glossaries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, Metric, generate_latest
from prometheus_client.registry import Collector

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, START_CACHE_PATH, STARTUP_PATH
from dragoman_contract.routing import DRAINED_PATH, HELD_GLOSSARIES_PATH, ROUTER_HEADER
from dragoman_http.bodies import ClientGoneError, read_body
from dragoman_protocols import messages
from dragoman_protocols.errors import (
    BodyTooLargeError,
    EngineDeadError,
    MethodNotAllowedError,
    RequestError,
)
from dragoman_protocols.glossaries.packed import MAX_PACKED_BYTES
from dragoman_protocols.routes import api_of
from dragoman_service.core.admission import Admission
from dragoman_service.engine.protocol import Engine, Phase
from dragoman_service.http.glossaries import AttachedGlossaries
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.start_cache import StartCacheExchange

READ = ["GET", "HEAD"]


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


def control_routes(
    lifecycle: Lifecycle,
    engine: Engine,
    admission: Admission,
    registry: Collector,
    tolerance: Tolerance,
    glossaries: AttachedGlossaries,
    exchange: StartCacheExchange,
) -> APIRouter:
    """The routes of the cluster's paths, which answer in any phase; they are not in the OpenAPI document.

    Args:
        lifecycle: The pod's phase.
        engine: Checked by the liveness probe.
        admission: Full, where requests are refused because of overload.
        registry: Of what `/metrics` exports.
        tolerance: When probes fail.
        glossaries: Those that routers attach.
        exchange: Serves the start cache.
    """
    router = APIRouter(include_in_schema=False)

    def state(why_not: str | None) -> Response:
        progress = lifecycle.progress
        return JSONResponse(
            {
                "phase": progress.phase,
                "progress": progress.share_ratio,
                "elapsed_s": round(lifecycle.start_s, 1),
                "phases_s": lifecycle.phases_s,
                "start_cache": exchange.result.outcome,
                "in_flight": lifecycle.in_flight,
                "reason": why_not,
            },
            200 if why_not is None else 503,
        )

    @router.api_route(LIVE_PATH, methods=READ)
    async def live() -> Response:
        """503 once only a restart helps: the engine is dead, or stuck."""
        if lifecycle.phase in (Phase.READY, Phase.LEAVING):
            try:
                await engine.check()
            except EngineDeadError:
                lifecycle.fail()
        return state(liveness_failure(lifecycle.phase, engine.stall_detector.stalled_s, tolerance))

    @router.api_route(READY_PATH, methods=READ)
    async def ready() -> Response:
        """200 from the end of the model's load to SIGTERM."""
        full = lifecycle.phase is Phase.READY and admission.full
        return state(readiness_failure(lifecycle.phase, engine.stall_detector.stalled_s, full, tolerance))

    @router.api_route(STARTUP_PATH, methods=READ)
    async def startup() -> Response:
        """503 with the phase and its progress until the model is loaded."""
        return state(None if lifecycle.started else f"the phase is {lifecycle.phase}")

    @router.api_route(METRICS_PATH, methods=READ)
    async def metrics() -> Response:
        """The engine's metrics and the pod's, as Prometheus reads them."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @router.post(DRAINED_PATH)
    async def drained(request: Request) -> Response:
        """A router confirms that it sends nothing new."""
        name = request.headers.get(ROUTER_HEADER)
        if not name:
            return _bad_request(request, f"send {ROUTER_HEADER}: it names the router that confirms")
        lifecycle.drained(name)
        return Response(status_code=204)

    @router.api_route(START_CACHE_PATH + "{key}", methods=READ)
    async def start_cache(request: Request, key: str) -> Response:
        """A pod of this deployment that starts takes what this one has compiled."""
        return await exchange.serve(request, key)

    @router.put(HELD_GLOSSARIES_PATH + "{revision}")
    async def attach(request: Request, revision: str) -> Response:
        """A router attaches a glossary. From another client it is harmless: the revision is the hash of the content."""
        try:
            await glossaries.put(revision, await read_body(request.receive, MAX_PACKED_BYTES))
        except ClientGoneError:
            return Response(status_code=400)
        except BodyTooLargeError as error:
            return _bad_request(request, str(error), 413)
        except ValueError as error:
            return _bad_request(request, f"no glossary of this revision: {error}")
        return Response(status_code=204)

    return router


async def wrong_method(request: Request, error: Exception) -> Response:
    """The answer to a method that a path has not, in the format of the API which the path is nearest to."""
    path = request.scope["path"]
    allowed = (getattr(error, "headers", None) or {}).get("Allow", "").split(", ")
    here = f"nothing here at {path[:100]!r} with {request.method}: use {' or '.join(allowed)}"
    return answer_of(request, MethodNotAllowedError(here, allowed))


def answer_of(request: Request, error: RequestError) -> Response:
    """An error in the format of the API which the path is nearest to."""
    parsed = messages.Request(request.method, request.scope["path"], b"", request.scope["headers"])
    answer = api_of(parsed).error(error, parsed)
    response = Response(answer.body, answer.status)
    response.raw_headers = answer.head()
    return response


def _bad_request(request: Request, message: str, status: int = 400) -> Response:
    where = f"{request.method} {request.url.path}"
    return JSONResponse({"error": {"code": "bad_request", "message": f"{where}: {message}"}}, status)
