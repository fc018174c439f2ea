"""What a kubelet and a monitoring system ask a pod."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from dragoman_contract.http import LIVE_PATH, METRICS_PATH, READY_PATH, STARTUP_PATH
from dragoman_service.engine.protocol import Engine
from dragoman_service.errors import EngineDeadError
from dragoman_service.lifecycle import Lifecycle, Phase


def probe_routes(lifecycle: Lifecycle, engine: Engine, registry: CollectorRegistry) -> APIRouter:
    """`/livez`, `/readyz`, `/startupz` and `/metrics`.

    Args:
        lifecycle: The phase.
        engine: Asked whether it lives.
        registry: What `/metrics` shows.
    """
    router = APIRouter()

    @router.get(LIVE_PATH)
    async def live() -> Response:
        """503 once only a restart helps: the engine is dead."""
        if lifecycle.phase is Phase.READY:
            try:
                await engine.check()
            except EngineDeadError:
                lifecycle.fail()
        return _state(lifecycle, lifecycle.phase is not Phase.FAILED)

    @router.get(READY_PATH)
    async def ready() -> Response:
        """200 while requests are taken: not before the model is loaded, not once a drain has begun."""
        return _state(lifecycle, lifecycle.phase is Phase.READY)

    @router.get(STARTUP_PATH)
    async def startup() -> Response:
        """503 with the phase and its progress until the model is loaded."""
        return _state(lifecycle, lifecycle.started)

    @router.get(METRICS_PATH)
    async def metrics() -> Response:
        """The engine's metrics and the pod's, as Prometheus reads them."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return router


def _state(lifecycle: Lifecycle, fine: bool) -> Response:
    progress = lifecycle.progress
    return JSONResponse(
        {
            "phase": progress.phase,
            "progress": progress.share_ratio,
            "elapsed_s": round(lifecycle.start_s, 1),
            "in_flight": lifecycle.in_flight,
        },
        200 if fine else 503,
    )
