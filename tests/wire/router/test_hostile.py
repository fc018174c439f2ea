"""Hostile and broken clients: each gets an answer or a closed connection, at no cost for others."""

import asyncio
import os
import random
import time
from typing import Any

import pytest
from tests.support.hostile.malformed import GOOD, hostile, post, throw

from dragoman_http import protocol, server

ROUNDS = int(os.environ.get("HOSTILE_REQUESTS", "600"))
"""`HOSTILE_REQUESTS=10000` is the figure in docs/benchmarks.md."""


async def test_hostile_requests_cost_no_other_client(router: Any, start_upstream: Any, until: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica(), pairs={"en": ("de",)})
    chance = random.Random(5)
    statuses: dict[bytes, int] = {}

    async def batch(count: int) -> None:
        for answer in await asyncio.gather(*(throw(router.port, hostile(chance)) for _ in range(count))):
            status = answer[9:12]
            statuses[status] = statuses.get(status, 0) + 1

    for _ in range(ROUNDS // 30):
        work = asyncio.ensure_future(batch(30))
        status, body, _ = await router.translate()
        assert (status, body) == (200, {"by": "one"})
        await work
    assert not [status for status in statuses if status.startswith(b"5")], statuses
    assert statuses[b"400"] > 0
    assert statuses[b"431"] > 0
    for exchange in one.translations:
        assert exchange.target == "/translate", exchange.target
        assert exchange.headers.get("x-dragoman-router") == "router-1"
        assert "transfer-encoding" not in exchange.headers
    await until(lambda: router.state.active == 0)
    assert router.state.memory.used_bytes == 0
    assert router.state.fleet.backends["default/a"].in_flight == 0


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """As `dragoman router` sets it."""
    caplog.set_level("CRITICAL", "uvicorn.error")


@pytest.mark.parametrize(
    "smuggled",
    [
        b"content-length: 4\r\ntransfer-encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 4\r\n",
        b"content-length: 4\r\ncontent-length: 50\r\n",
        b"transfer-encoding: \x0bchunked\r\n",
        b"transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n",
    ],
)
async def test_a_request_of_two_lengths_is_refused(router: Any, start_upstream: Any, smuggled: bytes) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    inner = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(GOOD), GOOD)
    got = await router.raw(b"POST /translate HTTP/1.1\r\nhost: x\r\n" + smuggled + b"\r\n0\r\n\r\n" + inner)
    assert got.startswith(b"HTTP/1.1 400")
    assert not one.received


@pytest.mark.parametrize(
    "headers",
    [b"x: " + b"y" * 50_000 + b"\r\n", b"".join(b"x-%d: y\r\n" % at for at in range(300))],
    ids=["long", "many"],
)
async def test_a_head_that_is_too_long_is_refused(router: Any, start_upstream: Any, headers: bytes) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    got = await router.raw(post(GOOD, headers=headers))
    assert got.startswith(b"HTTP/1.1 431")
    assert b"head_too_large" in got
    assert not one.received


async def test_a_request_that_never_ends_is_ended(start_router: Any, start_upstream: Any) -> None:
    router = await start_router(body_timeout_s=0.3)
    router.serve("a", (await start_upstream()).replica())
    began_s = time.monotonic()
    heads = router.raw(b"POST /translate HTTP/1.1\r\nhost: x\r\n")
    bodies = router.raw(post(GOOD, length=100))
    chunks = router.raw(
        b"POST /translate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"
    )
    for got in await asyncio.gather(heads, bodies, chunks):
        assert got.startswith(b"HTTP/1.1 408")
    assert time.monotonic() - began_s < 4


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"\r\n",
        b"GET /v2/languages HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET /v2/languages HTTP/1.1\r\nhost: x\r\n\r\n\r\n",
    ],
    ids=["nothing", "a line end", "a request", "a request and a line end"],
)
async def test_a_connection_that_nothing_more_comes_over_is_ended(
    start_router: Any, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(protocol, "FIRST_BYTE_TIMEOUT_S", 0.2)
    monkeypatch.setattr(server, "KEEP_ALIVE_S", 0.2)
    router = await start_router()
    reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
    writer.write(sent)
    async with asyncio.timeout(10):
        got = await reader.read()
    writer.close()
    assert got.startswith(b"HTTP/1.1 200") if sent.strip() else got == b""


async def test_a_large_body_is_refused_and_its_sender_gets_to_read_why(router: Any) -> None:
    router.serve("a")
    body = b"x" * 5_000_000
    got = await router.raw(post(body))
    assert got.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in got


async def test_memory_for_bodies_is_bounded(start_router: Any, start_upstream: Any, until: Any) -> None:
    router = await start_router(max_memory_bytes=1024 * 1024, max_queue_s=5)
    router.serve("a")
    big = {"text": "x" * 400_000}
    pending = [asyncio.ensure_future(router.translate(**big)) for _ in range(5)]
    await until(lambda: sum(each.done() for each in pending) == 3)
    assert {each.result()[0] for each in pending if each.done()} == {503}
    one = await start_upstream()
    router.state.fleet.set_replicas("default/a", [one.replica()])
    assert sorted([status for status, *_ in await asyncio.gather(*pending)]) == [200, 200, 503, 503, 503]


async def test_a_request_that_offers_http_2_is_forwarded_with_its_body(
    router: Any, start_upstream: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    offers = b"connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAEAAEAA\r\n"
    got = await router.raw(post(GOOD, headers=offers))
    assert got.startswith(b"HTTP/1.1 200")
    (received,) = one.received
    assert received.body == GOOD
    assert not received.headers.keys() & {"connection", "upgrade", "http2-settings"}
