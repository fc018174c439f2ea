"""What the arms without a server of their own share: a control endpoint that runs one measurement."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

Run = Callable[["RunRequest"], Awaitable[dict[str, Any]]]


class RunRequest(BaseModel):
    """One measurement to make; see `closed_loop.Pace` for the times."""

    kind: str
    seed: int
    requests: str | None
    in_flight: int
    window_s: float
    ramp_s: float
    drain_s: float


def driver_app(started: Callable[[], tuple[Run, Callable[[], None]]]) -> FastAPI:
    """An app that starts an engine with itself.

    Args:
        started: Starts it; returns what measures it, and what ends it.
    """
    runs: list[Run] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        run, close = started()
        runs.append(run)
        yield
        close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        """The engine is there before this server listens."""
        return {"phase": "ready"}

    @app.get("/metrics")
    async def metrics() -> Response:
        """VLLM's metrics."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/run")
    async def run(request: RunRequest) -> dict[str, Any]:
        """Measure once."""
        return await runs[0](request)

    return app
