"""Clients that mean harm, or know no better: each gets an answer or a closed connection, and costs nobody else."""

from __future__ import annotations

import asyncio
import os
import random
import time
from typing import Any

import pytest

ROUNDS = int(os.environ.get("HOSTILE_REQUESTS", "600"))
"""`HOSTILE_REQUESTS=10000` is the figure in docs/router.md."""

GOOD = b'{"text":"x","source_lang":"en","target_lang":"de"}'


def post(body: bytes, path: bytes = b"/translate", headers: bytes = b"", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return b"POST %s HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n%s\r\n%s" % (path, size, headers, body)


def hostile(chance: random.Random) -> bytes:
    """One request of any of the kinds."""
    junk = chance.randbytes(chance.randrange(1, 200))
    word = bytes(chance.choices(b"abcdefgh-", k=12))
    kinds = [
        lambda: junk + b"\r\n\r\n",
        lambda: post(GOOD[: chance.randrange(len(GOOD))]),
        lambda: post(b'{"text":' + junk + b"}"),
        lambda: post(b'{"text":"x","source_lang":"%s","target_lang":"%s"}' % (word, word)),
        lambda: post(b"[" * 50_000),
        lambda: post(GOOD, length=len(GOOD) - 5),
        lambda: post(GOOD, headers=b"x: " + b"y" * 100_000 + b"\r\n"),
        lambda: post(GOOD, headers=b"".join(b"x-%d: y\r\n" % at for at in range(5000))),
        lambda: post(GOOD, headers=b"transfer-encoding: chunked\r\n"),
        lambda: post(GOOD, headers=b"content-length: 3\r\n"),
        lambda: post(GOOD, headers=b"transfer-encoding: chunked, identity\r\n"),
        lambda: post(b"5\r\nabcde\r\nzz\r\n", headers=b"transfer-encoding: xchunked\r\n"),
        lambda: (
            b"POST /translate HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n"
        ),
        lambda: post(GOOD, headers=b"x: a\r\n\tfolded\r\n"),
        lambda: post(GOOD, headers=b"x : y\r\n"),
        lambda: post(GOOD, headers=b"x: a\nx-dragoman-router: forged\r\n"),
        lambda: post(GOOD, headers=b"x-dragoman-router: forged\r\nx-dragoman-deployment: nowhere/none\r\n"),
        lambda: b"GET http://169.254.169.254/latest HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /translate HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n",
        lambda: b"GET /d/default/a/metrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /d/default/a/%2e%2e/metrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /d/" + junk.replace(b" ", b"") + b" HTTP/1.1\r\n\r\n",
        lambda: post(b"", path=b"/" + b"a" * 60_000),
        lambda: post(
            b"q=" + junk.hex().encode(), headers=b"content-type: application/x-www-form-urlencoded\r\n"
        ),
        lambda: post(
            b"&".join(b"q=%d" % at for at in range(9000)),
            headers=b"content-type: application/x-www-form-urlencoded\r\n",
        ),
        lambda: post(
            b'[{"Text":"x"}]', path=b"/translate?api-version=3.0" + b"&to=de" * 500 + b"&to=" + word
        ),
        lambda: post(GOOD, path=b"/v1/chat/completions"),
        lambda: post(b"x" * 2000, length=3_000_000),
        lambda: hostile_form(chance, junk),
        lambda: hostile_form(chance, junk),
        lambda: post(b"", path=b"/v2/document/" + word * 2 + b"ffffffff/result"),
        lambda: b"GET /download_file/%2e%2e%2fmetrics HTTP/1.1\r\nhost: x\r\n\r\n",
        lambda: b"GET /download_file/" + b"0" * 30_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ]
    return chance.choice(kinds)()


def hostile_form(chance: random.Random, junk: bytes) -> bytes:
    """A form with a file that is broken, endless, mislabelled, or asks for what nobody serves."""
    part = b'--b\r\ncontent-disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
    bodies = [
        part % (b"file", b'; filename="a.txt"', junk) + b"--b--",
        part % (b"file", b'; filename="a.txt"', junk) + part % (b"source", b"", b"en"),
        part % (b"target", b"", junk) + part % (b"target_lang", b"", junk) + b"--b--",
        part % (junk, b"", b"x") + b"--b--\r\n",
        part % (b"x", b"", b"y") * 500 + b"--b--",
        b"--b" + b" " * 50_000 + b"\r\n\r\n--b--",
        b"\r\n--bz" * 20_000,
        b"--b\r\n" + b"x: y\r\n" * 2000,
        part % (b"source", b"; filename*=utf-8''" + junk.hex().encode(), b"en") * 3,
        b"--b\r\n" + junk,
    ]
    kinds = [
        b"boundary=b",
        b'boundary="b"',
        b"boundary=" + b"b" * 3000,
        b"boundary",
        b'boundary="',
        b"boundary=;",
    ]
    path = chance.choice([b"/translate_file", b"/v2/document"])
    declared = b"content-type: multipart/form-data; " + chance.choice(kinds[:2] * 4 + kinds[2:]) + b"\r\n"
    return post(chance.choice(bodies), path=path, headers=declared)


async def throw(port: int, data: bytes) -> bytes:
    """Send it, and read a little of what comes; then go."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    got = b""
    try:
        writer.write(data)
        async with asyncio.timeout(0.3):
            got = await reader.read(4096)
    except (TimeoutError, ConnectionError):
        pass
    finally:
        writer.transport.abort()
    return got


async def test_hostile_requests_cost_nobody_else(router: Any, start_upstream: Any, until: Any) -> None:
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
    got = await router.raw(
        b"POST /translate HTTP/1.1\r\nhost: x\r\n" + smuggled + b"\r\n0\r\n\r\n" + inner, deadline_s=1
    )
    assert got.startswith(b"HTTP/1.1 400")
    assert not one.asked


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


async def test_a_large_body_is_refused_and_its_sender_gets_to_read_why(router: Any) -> None:
    router.serve("a")
    body = b"x" * 5_000_000
    got = await router.raw(post(body))
    assert got.startswith(b"HTTP/1.1 413")
    assert b"body_too_large" in got


async def test_memory_for_bodies_is_bounded(start_router: Any, start_upstream: Any, until: Any) -> None:
    router = await start_router(max_memory_bytes=1024 * 1024, max_held_s=5)
    router.serve("a")
    big = {"text": "x" * 400_000}
    asking = [asyncio.ensure_future(router.translate(**big)) for _ in range(5)]
    await until(lambda: sum(each.done() for each in asking) == 3)
    assert {each.result()[0] for each in asking if each.done()} == {503}
    one = await start_upstream()
    router.state.fleet.set_replicas("default/a", [one.replica()])
    assert sorted([status for status, *_ in await asyncio.gather(*asking)]) == [200, 200, 503, 503, 503]
