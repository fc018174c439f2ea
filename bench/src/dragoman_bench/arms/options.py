"""The command line of every arm, and the engine and server that they share."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

TIMEOUT_S = 30.0
"""What the seeds give a request."""


@dataclass(frozen=True)
class ArmOptions:
    """One arm's command line.

    Args:
        model: Directory of the checkpoint.
        template: The prompt's words.
        engine: vLLM's engine arguments beside the model.
        port: Where to answer on loopback; 0 where the arm is no server.
        workers: Processes that each hold the model.
        batch: Most requests that a worker takes at once.
        batch_wait_s: How long it waits for them.
    """

    model: str
    template: str
    engine: dict[str, Any]
    port: int
    workers: int
    batch: int
    batch_wait_s: float

    @property
    def engine_arguments(self) -> dict[str, Any]:
        """The engine's arguments, the model among them."""
        return {"model": self.model, **self.engine}


class TranslateRequest(BaseModel):
    """The seeds' request."""

    text: str
    source_lang: str
    target_lang: str


class TranslateResponse(BaseModel):
    """The seeds' answer."""

    translation: str


def arm_options(argv: list[str] | None = None) -> ArmOptions:
    """Options from a command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--model", required=True)
    parser.add_argument("--template", required=True)
    parser.add_argument("--engine", type=json.loads, default={})
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--batch-wait", type=float, default=0.0, dest="batch_wait_s")
    return ArmOptions(**vars(parser.parse_args(argv)))


def command_line(options: ArmOptions) -> list[str]:
    """The command line that `arm_options` reads."""
    return [
        *("--model", options.model, "--template", options.template, "--engine", json.dumps(options.engine)),
        *("--port", str(options.port), "--workers", str(options.workers)),
        *("--batch", str(options.batch), "--batch-wait", str(options.batch_wait_s)),
    ]


def serve(app: FastAPI, port: int) -> None:
    """Serve until SIGTERM, as the pod does: uvicorn with uvloop and httptools."""
    uvicorn.run(
        app, host="127.0.0.1", port=port, http="httptools", loop="uvloop", ws="none", access_log=False
    )
