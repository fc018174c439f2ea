"""Memory of a pod over many requests, in a process of its own.

The application with the scripted engine is called as its server calls it, without sockets, by more callers
than it has slots. Of ten requests one is not JSON, one names a pair that is not served, one is left by
its client, some are refused for load, some fail, and the rest are translated. What the first quarter needs is not
growth: it fills caches and counters.
"""

import asyncio
import gc
import json
import os
import subprocess
import sys
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_http.protocol import EXTENSION
from dragoman_service.engine.scripted.engine import ScriptedEngine, script_from
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.settings import Settings
from dragoman_tune.server import resident_bytes

REQUESTS = 50_000

MAX_BYTES = 8 * 2**20
"""Of growth after the first quarter; a leak of 250 bytes a request would be more."""

SIDE_BY_SIDE = 30


def body(number: int) -> bytes:
    """The request of this number."""
    text = f"The cat number {number} sleeps on the warm stone."
    match number % 10:
        case 0:
            return b"{"
        case 1:
            return json.dumps({"text": text, "source_lang": "de", "target_lang": "ne"}).encode()
        case _:
            return json.dumps({"text": text, "source_lang": "en", "target_lang": "de"}).encode()


async def request(app: Any, number: int) -> str:
    """One request, and its status; `disconnected` where its client left before the answer."""
    leaves = number % 10 == 2
    parts: list[dict[str, Any]] = [{"type": "http.request", "body": body(number), "more_body": False}]
    sent: list[int] = []

    async def receive() -> dict[str, Any]:
        return parts.pop()

    async def send(message: dict[str, Any]) -> None:
        raise AssertionError(message)

    async def answer(status: int, headers: Any, body: bytes) -> None:
        if not leaves:
            sent.append(status)

    connection = SimpleNamespace(current=SimpleNamespace(disconnected=leaves, answer=answer))
    scope = {
        "extensions": {EXTENSION: connection},
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
        "path": "/translate", "raw_path": b"/translate", "query_string": b"", "root_path": "",
        "headers": [(b"content-type", b"application/json")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
    }  # fmt: skip
    await app(scope, receive, send)
    return str(sent[0]) if sent else "disconnected"


async def measure() -> dict[str, Any]:
    """How many requests ended in which way, and the resident memory at each quarter, in bytes."""
    served = '[{"source":"en","targets":["de"]}]'
    settings = Settings(
        model="m", engine="scripted", languages=json.loads(served), max_num_seqs=16, max_queued_sequences=12,
        engine_args={"token_s": 0.0005, "fail_every": 97},
    )  # fmt: skip
    engine = ScriptedEngine(script_from(settings), "m", CollectorRegistry())
    lifecycle = Lifecycle()
    app = create_app(settings, engine, lifecycle, CollectorRegistry(), None).app
    lifecycle.ready()
    ends: Counter[str] = Counter()
    numbers = iter(range(REQUESTS))

    async def caller() -> None:
        for number in numbers:
            status = await request(app, number)
            ends[status] += 1
            if status == "503":
                await asyncio.sleep(0.02)
            if number % quarter == 0:
                gc.collect()
                marks.append(resident_bytes(os.getpid()))

    # Libraries and their models are loaded on first use.
    assert await request(app, 9) == "200"
    marks: list[int] = []
    quarter = REQUESTS // 4
    await asyncio.gather(*(caller() for _ in range(SIDE_BY_SIDE)))
    gc.collect()
    marks.append(resident_bytes(os.getpid()))
    return {"ends": ends, "marks": marks}


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_nothing_stays_behind_of_fifty_thousand_requests() -> None:
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert {"200", "400", "422", "disconnected", "503"} <= found["ends"].keys()
    assert found["marks"][-1] - found["marks"][1] <= MAX_BYTES, found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure())))
