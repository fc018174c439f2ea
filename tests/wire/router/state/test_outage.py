"""Redis away, slow, and back: requests go on, and nothing that was counted is lost."""

import asyncio
import logging
from typing import Any

import pytest


async def test_an_outage_keeps_no_request_away(
    start_member: Any, own_redis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    limits = {"characterLimit": 100, "requestsPerS": 1000}
    one, two = [await start_member(own_redis.url, limits) for _ in range(2)]
    assert await one.translate(10) == 200
    assert await two.used() == 10
    own_redis.kill()
    assert [await one.translate(10) for _ in range(5)] == [200] * 5
    assert one.metric("dragoman_router_state_up") == 0
    assert caplog.text.count("state is not shared for now") <= 2, "one line of each router"
    assert await one.used() == 60, "what this router knows"
    assert await one.translate(41) == 429, "the last known total, and its own"
    own_redis.start()
    async with asyncio.timeout(30):
        # The server lost what it had; the first reservation that it did not answer counts as made there.
        while await two.used() != 40:  # noqa: ASYNC110 - another router sends it
            await asyncio.sleep(0.05)
        while not one.metric("dragoman_router_state_up"):  # noqa: ASYNC110 - set by a task
            await asyncio.sleep(0.05)
    assert "answers again" in caplog.text
    assert one.metric("dragoman_router_state_pending_seconds") == 0


async def test_a_server_that_hangs_holds_requests_up_for_no_longer_than_its_timeout(
    start_member: Any, own_redis: Any
) -> None:
    member = await start_member(own_redis.url, {"characterLimit": 1000}, state_timeout_s=0.25)
    assert await member.translate() == 200
    own_redis.pause()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    assert await asyncio.gather(*(member.translate() for _ in range(20))) == [200] * 20
    first_s = loop.time() - began_s
    assert member.metric("dragoman_router_state_up") == 0
    errors = member.metric("dragoman_router_state_errors_total", operation="reserve")
    assert await member.translate() == 200
    assert member.metric("dragoman_router_state_errors_total", operation="reserve") == errors, "not tried"
    assert first_s < 5


async def test_a_start_goes_on_without_a_server(
    start_member: Any, own_redis: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("dragoman_router.state.redis.START_S", 0.3)
    own_redis.kill()
    member = await start_member(own_redis.url)
    assert "does not answer" in caplog.text
    assert await member.translate(5) == 200
    own_redis.start()
    async with asyncio.timeout(30):
        while not member.metric("dragoman_router_state_up"):  # noqa: ASYNC110 - set by a task
            await asyncio.sleep(0.05)
    assert await member.used() == 5
