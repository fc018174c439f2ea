"""What comes before a body is bounded, in the pod as in the router: an endless head costs no memory and no time."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from prometheus_client import CollectorRegistry

from dragoman_http.limits import MAX_PIPELINED, MAX_SHORT_CHUNKS
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.server import LIMITS, Pod, listen
from dragoman_service.http.tracing import tracing
from dragoman_service.settings import Settings

BODY = json.dumps({"text": "Hello", "source_lang": "en", "target_lang": "de"}).encode()
HEAD = b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
WHOLE = HEAD + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
DEADLINE_S = 30


@pytest.fixture
async def port() -> AsyncIterator[int]:
    """A pod in this process."""
    registry, lifecycle = CollectorRegistry(), Lifecycle()
    settings = Settings(model="m", engine="scripted")
    engine = ScriptedEngine(Script(), "m", registry)
    app = create_app(settings, engine, lifecycle, registry, tracing(None, "m"))
    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(Pod(app, engine, lifecycle, 0).run(listening))
        async with asyncio.timeout(DEADLINE_S):
            while not lifecycle.started:  # noqa: ASYNC110 - it sets no event
                await asyncio.sleep(0.005)
        yield listening.getsockname()[1]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def answers(port: int, *pieces: bytes) -> bytes:
    """All that comes back on one connection, until it is closed or nothing is left to send and 1 s has passed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    came = b""

    async def read() -> None:
        nonlocal came
        while more := await reader.read(65536):
            came += more

    reading = asyncio.create_task(read())
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            if reading.done():
                break
    except ConnectionError:
        pass
    await asyncio.wait((reading,), timeout=1 if came.endswith(b"}") else 10)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    writer.transport.abort()
    return came


def statuses(came: bytes) -> list[int]:
    return [int(part[:3]) for part in came.split(b"HTTP/1.1 ")[1:]]


async def test_an_ordinary_request_passes(port: int) -> None:
    assert statuses(await answers(port, WHOLE)) == [200]


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((b"GET /" + b"a" * LIMITS.address_bytes + b" HTTP/1.1\r\nhost: x\r\n\r\n",), 414),
        ((b"GET /?q=",) + (b"a" * 1000,) * 1000, 414),
        ((HEAD, b"x-long: ") + (b"a" * 1000,) * 1000, 431),
        ((HEAD + b"x-long: " + b"a" * LIMITS.head_bytes + b"\r\n\r\n",), 431),
        ((HEAD + b"a: b\r\n" * (LIMITS.headers + 1) + b"\r\n",), 431),
        (
            (HEAD + b"transfer-encoding: chunked\r\n\r\n",) + (b"1\r\na\r\n" * 64,) * (MAX_SHORT_CHUNKS // 8),
            431,
        ),
    ],
)
async def test_a_head_that_is_too_long_is_refused(port: int, pieces: tuple[bytes, ...], status: int) -> None:
    came = await answers(port, *pieces)

    assert statuses(came) == [status]
    assert b"connection: close" in came


async def test_a_long_head_behind_a_request_is_not_its_answer(port: int) -> None:
    came = await answers(port, WHOLE + HEAD + b"x-long: " + b"a" * LIMITS.head_bytes)

    assert set(statuses(came)) <= {200}


async def test_pipelined_requests_are_bounded(port: int) -> None:
    came = await answers(port, WHOLE * (MAX_PIPELINED + 40))

    assert len(statuses(came)) <= MAX_PIPELINED + 2
    assert set(statuses(came)) <= {200}
