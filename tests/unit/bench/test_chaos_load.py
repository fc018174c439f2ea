"""The chaos run's load: what it counts as answered, lost and wrong."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import asynccontextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))
sys.path.insert(0, str(Path(__file__).parents[3] / "bench" / "router"))

from chaos_engines import work_of
from chaos_load import PATIENCE, Load, Phase
from faults.questions import known_to_the_model, numbered, spoken, translated_twice

from dragoman_service.text.guards import Expectation, check


def whole(translation: str, *extra: str, status: str = "200 OK") -> bytes:
    """An answer as a router gives it."""
    body = json.dumps({"translation": translation}).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *extra, "", ""]
    return "\r\n".join(head).encode() + body


def reverse(text: str) -> bytes:
    return whole(text[::-1])


@asynccontextmanager
async def serving(handle):
    """A server on loopback whose connections are handled by `handle(reader, writer)`; its port."""
    handlers: set[Any] = set()

    async def handled(reader, writer):
        handlers.add(asyncio.current_task())
        try:
            await handle(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # The client left.
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    listening = await asyncio.start_server(handled, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        await asyncio.gather(*handlers)


async def text_from(reader) -> str:
    """The next request's."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
    return str(json.loads(await reader.readexactly(length))["text"])


def server(*replies):
    """Answers requests by `reply(text)` each, the last one again and again; None breaks the connection off."""
    left = list(replies)

    async def handle(reader, writer):
        while True:
            text = await text_from(reader)
            reply = left.pop(0) if len(left) > 1 else left[0]
            if reply is None:
                writer.transport.abort()
                return
            writer.write(reply(text))

    return serving(handle)


async def sent(*ports: int, times: int = 1) -> Phase:
    """What becomes of so many requests, one after another."""
    load = Load(1, list(ports), numbered())
    load.begin("all")
    for question in islice(numbered(), times):
        await load.send(question, 0, load.phases[0])
    # What comes after an answer is there by now, or is on its way here.
    for _ in range(5):
        await asyncio.sleep(0.01)
    load.finish()
    return load.phases[0]


def counts(phase: Phase) -> tuple[int, int, int, int]:
    return phase.sent, len(phase.lost), len(phase.wrong), phase.reconnected


async def test_right_answers():
    async with server(reverse) as port:
        phase = await sent(port, times=3)
    assert counts(phase) == (3, 0, 0, 0)
    assert len(phase.seconds) == 3


@pytest.mark.parametrize(
    "reply",
    [
        lambda text: whole(text),
        lambda text: whole(text[::-1] * 2),
        lambda text: whole(text[:0:-1]),
        lambda text: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        lambda text: b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnone",
        lambda text: b"what?\r\n\r\n",
    ],
    ids=["another's", "doubled", "cut short", "no translation", "no JSON", "no HTTP"],
)
async def test_answers_that_are_not_right(reply):
    async with server(reply) as port:
        assert counts(await sent(port)) == (1, 0, 1, 0)


async def test_half_an_answer_is_wrong():
    async def handle(reader, writer):
        writer.write(reverse(await text_from(reader))[:-5])

    async with serving(handle) as port:
        assert counts(await sent(port)) == (1, 0, 1, 0)


@pytest.mark.parametrize("extra", [(), ("Connection: close",)], ids=["kept", "closed"])
async def test_two_answers_are_one_too_many(extra):
    async with server(lambda text: whole(text[::-1], *extra) * 2) as port:
        phase = await sent(port)
    assert (phase.sent, len(phase.wrong)) == (1, 1)


async def test_an_answer_that_comes_late_a_second_time():
    async def handle(reader, writer):
        text = await text_from(reader)
        writer.write(reverse(text))
        await writer.drain()
        # The first is read by itself.
        await asyncio.sleep(0.01)
        writer.write(reverse(text))
        await reader.read()

    async with serving(handle) as port:
        assert counts(await sent(port)) == (1, 0, 1, 0)


async def test_refusals_are_lost():
    async with server(lambda text: whole("", status="503 Service Unavailable")) as port:
        phase = await sent(port)
    assert counts(phase) == (1, 1, 0, 0)
    assert "503" in phase.lost[0]


async def test_a_connection_that_breaks_before_an_answer_is_retried_at_the_other_router():
    async with server(None) as broken, server(reverse) as good:
        assert counts(await sent(broken, good)) == (1, 0, 0, 1)
    # Neither listens any more.
    assert counts(await sent(broken, good)) == (1, 1, 0, PATIENCE.attempts)


async def test_what_a_router_had_to_send_again_is_counted():
    async with server(
        lambda text: whole(text[::-1], "X-Dragoman-Route: pair; attempts=2"),
        lambda text: whole(text[::-1], "X-Dragoman-Route: pair"),
    ) as port:
        assert (await sent(port, times=3)).retried == 1


def test_no_text_is_sent_twice():
    for questions in (numbered(), spoken()):
        first = list(islice(questions, 500))
        assert len({question.text for question in first}) == 500


async def test_only_texts_that_the_model_knows_are_sent():
    async def answer(question):
        return question.expected if " b " in question.text else "?"

    known = await known_to_the_model(numbered(), 10, answer)
    assert [question.text for question in known] == ["request number b of many"]


def test_work_is_counted_by_text_and_pod(tmp_path):
    journal = tmp_path / "journal"
    # c is translated twice each time that it is begun, unless the pod is killed in between.
    journal.write_text("1\ta\n1\tb\n2\tb\n1\tb\n1\tc\n1\tc\n1\tcc\n2\tcc\n2\tcc\n1\td\n1\td\n")
    assert work_of(journal, lambda text: "c" in text) == {
        "texts": 5,
        "generations": 11,
        "again": 3,
        "again_elsewhere": 2,
        "most": 3,
    }


@pytest.mark.slow
def test_some_texts_are_translated_twice():
    first = list(islice(numbered(), 2000))
    found = [question for question in first if translated_twice(question.text)]
    assert 0 < len(found) < 200
    for question in found:
        assert check(question.text, question.expected, Expectation("en", question.target))
