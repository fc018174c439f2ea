"""How many modules a warm sentence passes: few, so that a reader can follow it."""

import asyncio
import json
import sys
from types import FrameType
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.http.app import create_app
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.server import Pod, listen
from dragoman_service.settings import Settings

MAX_MODULES = 35


def request(text: str) -> bytes:
    body = json.dumps({"text": text, "source_lang": "en", "target_lang": "de"}).encode()
    return b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


async def answered(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return await reader.readexactly(int(length))


@pytest.mark.slow
async def test_a_warm_sentence_passes_few_modules() -> None:
    settings = Settings(model="m", engine="scripted")
    engine = ScriptedEngine(Script(), "m", CollectorRegistry())
    lifecycle = Lifecycle()
    app = create_app(settings, engine, lifecycle, CollectorRegistry(), None)
    passed: set[str] = set()

    def note(frame: FrameType, event: str, arg: Any) -> None:
        _, ours, module = frame.f_code.co_filename.partition("/src/dragoman_")
        if ours:
            passed.add(module)

    with listen("127.0.0.1", 0) as listening:
        running = asyncio.create_task(Pod(app, engine, lifecycle, 0).run(listening))
        while not lifecycle.started:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1])
        for text in ("Hello one", "Hello two", "Hello three"):
            sys.setprofile(note if text == "Hello three" else None)
            writer.write(request(text))
            answer = await answered(reader)
        sys.setprofile(None)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        writer.close()
    assert json.loads(answer) == {"translation": "eerht olleH"}
    assert len(passed) <= MAX_MODULES, " ".join(sorted(passed))
