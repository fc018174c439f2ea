"""B0, B1 and B2: FastAPI in front of worker processes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, HTTPException, Response

from dragoman_bench.arms.options import (
    TIMEOUT_S,
    ArmOptions,
    TranslateRequest,
    TranslateResponse,
    arm_options,
    serve,
)
from dragoman_bench.arms.translation_worker import TranslationWorker


def create_app(worker: TranslationWorker) -> FastAPI:
    """The seeds' endpoint over a worker that runs."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.listen()
        yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        """The workers have their models before this server listens."""
        return {"phase": "ready"}

    @app.post("/translate")
    async def translate(request: TranslateRequest, response: Response) -> TranslateResponse:
        """Hand over and wait for the event."""
        began_s = time.monotonic()
        task = worker.add_translation_task(request.text, request.source_lang, request.target_lang)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await task.event.wait()
        except TimeoutError:
            raise HTTPException(504, "timeout") from None
        finally:
            worker.forget(task.key)
        result = task.result
        assert result is not None
        compute_ms = (result.ended_s - result.began_s) * 1000
        elsewhere_ms = (time.monotonic() - began_s) * 1000 - compute_ms
        response.headers["Server-Timing"] = f"queue;dur={elsewhere_ms:.2f}, compute;dur={compute_ms:.2f}"
        return TranslateResponse(translation=result.translation)

    return app


def main(options: ArmOptions) -> None:
    """Run the arm until SIGTERM."""
    worker = TranslationWorker(options)
    worker.run()
    try:
        serve(create_app(worker), options.port)
    finally:
        worker.stop()


if __name__ == "__main__":
    main(arm_options())
