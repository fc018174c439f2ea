import asyncio
import os
import signal
from typing import Any

import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from dragoman_service.engine.protocol import Phase
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http.app import PodApp
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.server import Pod, listen


async def until(lifecycle: Lifecycle, phase: Phase) -> None:
    async with asyncio.timeout(10):
        while lifecycle.phase is not phase:  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def make_pod(lifecycle: Lifecycle, **seconds: float) -> Pod:
    async def warm_up() -> None:
        """Nothing to load."""

    app = FastAPI()

    @app.get("/admitted")
    async def admitted() -> str:
        with lifecycle.admit(direct=True):
            return "whole"

    made = PodApp(app, warm_up, (), lambda: None)
    return Pod(made, ScriptedEngine(Script(), "m", CollectorRegistry()), lifecycle, 5, **seconds)


async def test_confirmations_of_all_routers_end_the_lame_duck_s_time() -> None:
    lifecycle = Lifecycle()
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(make_pod(lifecycle, lame_duck_s=3600).run(listening))
        await until(lifecycle, Phase.READY)
        os.kill(os.getpid(), signal.SIGTERM)
        await until(lifecycle, Phase.LEAVING)
        with lifecycle.admit():
            assert lifecycle.closes_connections()
        lifecycle.released.set()
        async with asyncio.timeout(10):
            await running
    assert lifecycle.phase is Phase.DRAINING


@pytest.mark.parametrize("seconds", [{}, {"lame_duck_s": 0.0}])
async def test_without_that_time_a_pod_drains_at_once(seconds: Any) -> None:
    lifecycle = Lifecycle()
    phases: list[Phase] = []
    leave = lifecycle.leave
    lifecycle.drain = lambda: phases.append(lifecycle.phase)  # type: ignore[method-assign]

    def leave_and_note() -> None:
        leave()
        phases.append(lifecycle.phase)

    lifecycle.leave = leave_and_note  # type: ignore[method-assign]
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(make_pod(lifecycle, **seconds).run(listening))
        await until(lifecycle, Phase.READY)
        os.kill(os.getpid(), signal.SIGTERM)
        async with asyncio.timeout(10):
            await running
    assert phases == [Phase.LEAVING, Phase.LEAVING]


async def test_a_connection_made_before_the_listener_closed_is_answered() -> None:
    lifecycle = Lifecycle()
    with listen("127.0.0.1", 0) as listening:
        address = listening.getsockname()
        running = asyncio.create_task(make_pod(lifecycle).run(listening))
        await until(lifecycle, Phase.READY)
        with lifecycle.admit():
            reader, writer = await asyncio.open_connection(*address)
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lifecycle, Phase.DRAINING)
        async with asyncio.timeout(10):
            while listening.fileno() != -1:  # noqa: ASYNC110
                await asyncio.sleep(0)
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(*address)
            assert lifecycle.phase is Phase.DRAINING
            writer.write(b"GET /admitted HTTP/1.1\r\nHost: x\r\n\r\n")
            answer = await reader.read()
            await running
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.endswith(b'"whole"')
