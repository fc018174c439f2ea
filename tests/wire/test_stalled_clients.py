"""A client that does not read its answer is disconnected by the pod, and its generation ends."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest
from prometheus_client import CollectorRegistry
from tests.support.waiting import until

from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.server import Pod, listen
from dragoman_service.http.tracing import tracing
from dragoman_service.settings import Settings

SENTENCE = "This is one of many sentences, of some length so that a few of them fill what a socket holds. "


@asynccontextmanager
async def pod(script: Script) -> AsyncIterator[tuple[int, CollectorRegistry, Lifecycle]]:
    """A pod in this process, whose connections have a small send buffer; its port, metrics and life."""
    registry, lifecycle = CollectorRegistry(), Lifecycle()
    settings = Settings(model="m", engine="scripted")
    engine = ScriptedEngine(script, "m", registry)
    app = create_app(settings, engine, lifecycle, registry, tracing(None, "m"))
    with listen("127.0.0.1", 0, write_timeout_s=0.5) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        running = asyncio.create_task(Pod(app, engine, lifecycle, 0).run(listening))
        await until(lambda: lifecycle.started)
        try:
            yield listening.getsockname()[1], registry, lifecycle
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            await running


@contextmanager
def asking(port: int, **fields: object) -> Iterator[socket.socket]:
    """A client with a small receive buffer that has sent a request and reads nothing."""
    body = json.dumps({"source_lang": "en", "target_lang": "de", **fields}).encode()
    head = f"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        client.sendall(head.encode() + body)
        yield client


@pytest.mark.parametrize(
    ("streams", "script"),
    [(True, Script(token_s=0.0001)), (False, Script())],
    ids=["streamed", "whole"],
)
async def test_an_answer_that_is_not_read_is_given_up(streams: bool, script: Script) -> None:
    async with pod(script) as (port, registry, lifecycle):

        def metric(name: str) -> float | None:
            return registry.get_sample_value(name, {"model_name": "m"})

        with asking(port, text=SENTENCE * 2500, stream=streams):
            await until(lambda: metric("dragoman_clients_stalled_total"))
            await until(lambda: not lifecycle.in_flight)
            await until(lambda: not metric("vllm:num_requests_running"))
        assert metric("dragoman_clients_stalled_total") == 1
        assert metric("dragoman_admitted_tokens") == 0
