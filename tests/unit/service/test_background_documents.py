"""Documents that are translated after their upload was answered."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from dragoman_contract.routing import REFUSED_HEADER
from dragoman_service.core.costs import Cost, cost_of
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http.app import create_app
from dragoman_service.http.files import ReadFile
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.settings import Settings

LIMIT_S = 10.0


async def test_an_upload_that_is_not_admitted_when_the_drain_ends_is_refused(
    make_settings: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def cost(_: ReadFile) -> Cost:
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(LIMIT_S)
        return cost_of(())

    monkeypatch.setattr(ReadFile, "cost", property(cost))
    lifecycle = Lifecycle()
    engine = ScriptedEngine(Script(), "m", CollectorRegistry())
    app: Any = create_app(make_settings(), engine, lifecycle, CollectorRegistry(), None).app
    await engine.load(lambda _: None)
    lifecycle.ready()
    upload: dict[str, Any] = {
        "data": {"source_lang": "EN", "target_lang": "DE"},
        "files": {"file": ("a.txt", b"Hello")},
    }

    try:
        async with (
            asyncio.timeout(LIMIT_S),
            httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://pod") as http,
            asyncio.TaskGroup() as tasks,
        ):
            answer = tasks.create_task(http.post("/v2/document", **upload))
            await begun.wait()
            lifecycle.drain()
            lifecycle.give_up()
            refused = await answer
    finally:
        go_on.set()
        await engine.aclose()

    assert (refused.status_code, refused.headers[REFUSED_HEADER]) == (503, "draining")
    assert lifecycle.in_flight == 0
