"""What a kubelet and a monitoring system ask a pod."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, STARTUP_PATH
from dragoman_protocols.errors import EngineDeadError
from dragoman_service.core.admission import Admission
from dragoman_service.engine.protocol import Engine, Phase
from dragoman_service.http.lifecycle import Lifecycle


@dataclass(frozen=True)
class Tolerance:
    """What a pod puts up with and still calls itself well.

    Args:
        stall_timeout_s: Seconds without an engine step, with work to do, after which it is not alive.
        unready_when_overloaded: Whether it is unready while it refuses requests for load.
    """

    stall_timeout_s: float
    unready_when_overloaded: bool = False


def ailment(phase: Phase, stalled_s: float, tolerance: Tolerance) -> str | None:
    """Why only a restart helps, in words; None where none is needed."""
    if phase is Phase.FAILED:
        return "the engine is gone"
    if stalled_s > tolerance.stall_timeout_s:
        return f"the engine has had work for {stalled_s:.0f} s and has done none of it"
    return None


def hindrance(phase: Phase, stalled_s: float, full: bool, tolerance: Tolerance) -> str | None:
    """Why no requests should be sent here, in words; None where they should."""
    ill = ailment(phase, stalled_s, tolerance)
    if ill is not None:
        return ill
    if phase is Phase.LEAVING:
        return "this replica is about to leave"
    if phase is not Phase.READY:
        return f"the phase is {phase}"
    if full and tolerance.unready_when_overloaded:
        return "this replica has as much as it may take on"
    return None


def probe_routes(
    lifecycle: Lifecycle,
    engine: Engine,
    admission: Admission,
    registry: Collector,
    tolerance: Tolerance,
) -> APIRouter:
    """`/livez`, `/readyz`, `/startupz` and `/metrics`.

    Args:
        lifecycle: The phase.
        engine: Asked whether it lives, and gets on with its work.
        admission: Asked whether it takes more.
        registry: What `/metrics` shows.
        tolerance: See there.
    """
    router = APIRouter(include_in_schema=False)

    @router.get(LIVE_PATH)
    async def live() -> Response:
        """503 once only a restart helps: the engine is dead, or stuck."""
        if lifecycle.phase in (Phase.READY, Phase.LEAVING):
            try:
                await engine.check()
            except EngineDeadError:
                lifecycle.fail()
        return _state(lifecycle, ailment(lifecycle.phase, engine.stall_detector.stalled_s, tolerance))

    @router.get(READY_PATH)
    async def ready() -> Response:
        """200 while requests should come: not before the model is loaded, not once the pod is to leave."""
        full = lifecycle.phase is Phase.READY and admission.full
        return _state(lifecycle, hindrance(lifecycle.phase, engine.stall_detector.stalled_s, full, tolerance))

    @router.get(STARTUP_PATH)
    async def startup() -> Response:
        """503 with the phase and its progress until the model is loaded."""
        return _state(lifecycle, None if lifecycle.started else f"the phase is {lifecycle.phase}")

    @router.get(METRICS_PATH)
    async def metrics() -> Response:
        """The engine's metrics and the pod's, as Prometheus reads them."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def _state(lifecycle: Lifecycle, why_not: str | None) -> Response:
    progress = lifecycle.progress
    return JSONResponse(
        {
            "phase": progress.phase,
            "progress": progress.share_ratio,
            "elapsed_s": round(lifecycle.start_s, 1),
            "in_flight": lifecycle.in_flight,
            "reason": why_not,
        },
        200 if why_not is None else 503,
    )
