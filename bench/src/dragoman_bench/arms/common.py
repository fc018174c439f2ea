"""Command line and HTTP interface of the servers in this package."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel

from dragoman_tune.requests import SampleRequest


@dataclass(frozen=True)
class ArmOptions:
    """The command line of one server.

    Args:
        model: Directory of the checkpoint.
        engine: vLLM's engine arguments beside the model.
        workers: Processes that each load the model.
        batch: Maximum number of requests that a worker takes at once.
        batch_wait_s: Maximum time that it waits for them.
    """

    model: str
    template: str
    engine: dict[str, Any]
    port: int = 0
    workers: int = 1
    batch: int = 1
    batch_wait_s: float = 0.0

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """The engine's arguments, the model among them."""
        return {"model": self.model, **self.engine}

    def command_line(self) -> list[str]:
        """The arguments that `arm_options` reads."""
        return [json.dumps(vars(self))]


def arm_options(argv: list[str] | None = None) -> ArmOptions:
    """Options from a command line: one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("options", type=json.loads)
    return ArmOptions(**parser.parse_args(argv).options)


class TranslateRequest(BaseModel):
    """The original system's request."""

    text: str
    source_lang: str
    target_lang: str


class TranslateResponse(BaseModel):
    """The original system's response."""

    translation: str


class Translated(NamedTuple):
    """One translation, and seconds that it took, where the server measures them."""

    text: str
    queue_s: float | None = None
    compute_s: float | None = None


Translate = Callable[[SampleRequest], Awaitable[Translated]]


def serve(port: int, engine: Callable[[], AbstractAsyncContextManager[Translate]]) -> None:
    """Serve until SIGTERM, as the pod does: uvicorn with uvloop and httptools.

    Args:
        port: Port on loopback.
        engine: Starts before the server listens, and ends with it.
    """
    translators: list[Translate] = []

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with engine() as translate:
            translators.append(translate)
            yield

    app = FastAPI(lifespan=lifespan)

    @app.get("/readyz")
    async def readyz() -> dict[str, str]:
        """The engine is loaded before this server listens."""
        return {"phase": "ready"}

    @app.get("/metrics")
    async def metrics() -> Response:
        """VLLM's metrics."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    @app.post("/translate")
    async def translate(body: TranslateRequest, response: Response) -> TranslateResponse:
        """Translate one text."""
        result = await translators[0](SampleRequest(body.text, body.source_lang, body.target_lang))
        if result.queue_s is not None and result.compute_s is not None:
            times = f"queue;dur={1000 * result.queue_s:.2f}, compute;dur={1000 * result.compute_s:.2f}"
            response.headers["Server-Timing"] = times
        return TranslateResponse(translation=result.text)

    uvicorn.run(
        app, host="127.0.0.1", port=port, http="httptools", loop="uvloop", ws="none", access_log=False
    )
