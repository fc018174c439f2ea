"""B3: AsyncLLM used directly in FastAPI, as the seeds show it, on today's vLLM."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from dragoman_bench.arms.async_engine import AsyncEngine
from dragoman_bench.arms.options import (
    ArmOptions,
    TranslateRequest,
    TranslateResponse,
    arm_options,
    serve,
)
from dragoman_tune.requests import Request


def create_app(options: ArmOptions) -> FastAPI:
    """An endpoint whose engine starts and ends with the server."""
    engines: list[AsyncEngine] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        engines.append(AsyncEngine(options))
        yield
        engines.pop().close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        """The engine is there before this server listens."""
        return {"phase": "ready"}

    @app.get("/metrics")
    async def metrics() -> Response:
        """VLLM's metrics."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/translate")
    async def translate(request: TranslateRequest) -> TranslateResponse:
        """Generate on the event loop that serves."""
        wanted = Request(request.text, request.source_lang, request.target_lang)
        return TranslateResponse(translation=await engines[0].translate(wanted))

    return app


if __name__ == "__main__":
    chosen = arm_options()
    serve(create_app(chosen), chosen.port)
