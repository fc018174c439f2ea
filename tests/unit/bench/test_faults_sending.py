"""A client of two routers: wrong answers, retries, deadlines, slow reading."""

import asyncio
import json
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from faults.client import CheckingClient
from faults.questions import KnownRequest, lengthened, numbered_at
from faults.sending import Patience, RequestOutcome, send

BIG = KnownRequest("abc", "en", "de", "cba", copies=400_000)


def http(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def right(question: KnownRequest) -> bytes:
    return http(json.dumps({"translation": question.translation}).encode())


def reverse(text: str, *headers: str) -> bytes:
    return http(json.dumps({"translation": text[::-1]}).encode(), *headers)


@asynccontextmanager
async def serving(*replies: bytes | Callable[[str], bytes] | None, close: bool = False, then: bytes = b""):
    """Answers with each reply, the last one again and again; its port, and when each connection ended.

    Args:
        replies: Bytes, a function of the request's text, or None, which breaks the connection.
        close: Whether the connection is closed after an answer.
        then: What follows each answer a moment later.
    """
    left, ended = list(replies), []
    handlers: set[Any] = set()

    async def handle(reader, writer):
        handlers.add(asyncio.current_task())
        closed = asyncio.Event()
        ended.append(closed)
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length")
                )
                text = json.loads(await reader.readexactly(length))["text"]
                reply = left.pop(0) if len(left) > 1 else left[0]
                if reply is None:
                    return
                writer.write(reply(text) if callable(reply) else reply)
                await writer.drain()
                if then:
                    await asyncio.sleep(0.01)
                    writer.write(then)
                if close:
                    writer.close()
                    await writer.wait_closed()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            closed.set()
            writer.transport.abort()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield listening.sockets[0].getsockname()[1], ended
    finally:
        listening.close()
        await asyncio.gather(*handlers)


async def sent(
    *ports: int, question: KnownRequest | None = None, patience: Patience | None = None, stall_s: float = 0.0
) -> RequestOutcome:
    client = CheckingClient()
    try:
        return await send(client, question or numbered_at(0), ports, patience or Patience(), stall_s=stall_s)
    finally:
        client.close()


async def test_a_right_answer():
    async with serving(reverse) as (port, _):
        outcome = await sent(port)
    assert (outcome.lost, outcome.wrong, outcome.reconnected, outcome.resent) == ("", "", 0, False)


@pytest.mark.parametrize(
    "reply",
    [
        lambda text: reverse(text[::-1]),
        lambda text: reverse(text * 2),
        lambda text: reverse(text[1:]),
        http(b"{}"),
        http(b"none"),
        b"what?\r\n\r\n",
        lambda text: reverse(text)[:-5],
    ],
    ids=["another's", "doubled", "cut short", "no translation", "no JSON", "no HTTP", "half"],
)
async def test_answers_that_are_not_right(reply):
    async with serving(reply, close=True) as (port, _):
        outcome = await sent(port)
    assert outcome.wrong
    assert not outcome.lost


@pytest.mark.parametrize(
    ("extra", "close", "late"),
    [((), False, False), (("Connection: close",), True, False), ((), False, True)],
    ids=["at once", "closed", "late"],
)
async def test_a_second_answer_is_noticed(extra, close, late):
    client, one = CheckingClient(), reverse(numbered_at(0).text, *extra)
    async with serving(one if late else one * 2, close=close, then=one if late else b"") as (port, _):
        outcome = await send(client, numbered_at(0), [port], Patience())
        # What comes after an answer is received by then.
        for _ in range(5):
            await asyncio.sleep(0.01)
        client.close()
    assert bool(outcome.wrong) + client.surplus == 1


async def test_a_connection_that_breaks_before_an_answer_is_retried_at_the_other_router():
    async with serving(None) as (broken, _), serving(reverse) as (good, _):
        outcome = await sent(broken, good)
    assert (outcome.lost, outcome.wrong, outcome.reconnected) == ("", "", 1)
    outcome = await sent(broken, good, patience=Patience(attempts=4))
    assert outcome.lost
    assert outcome.reconnected == 4


async def test_an_answer_of_a_second_replica_is_counted():
    async with serving(lambda text: reverse(text, "X-Dragoman-Route: pair; attempts=2")) as (port, _):
        assert (await sent(port)).resent


@pytest.mark.parametrize("status", ["503 Service Unavailable", "429 Too Many Requests"])
async def test_a_refusal_with_retry_after_is_retried(status):
    async with serving(http(b"{}", "Retry-After: 0", status=status), right(numbered_at(0))) as (port, _):
        outcome = await sent(port)
    assert (outcome.lost, outcome.wrong, outcome.refused) == ("", "", 1)


async def test_a_refusal_without_retry_after_is_lost():
    async with serving(http(b"{}", status="503 Service Unavailable")) as (port, _):
        outcome = await sent(port)
    assert outcome.lost.startswith("503")
    assert outcome.refused == 0


async def test_refusals_end_with_the_deadline():
    async with serving(http(b"{}", "Retry-After: 1", status="503 Service Unavailable")) as (port, _):
        outcome = await sent(port, patience=Patience(seconds=0.1))
    assert "refused: 503" in outcome.lost


@pytest.mark.parametrize("status", ["500 Internal Server Error", "502 Bad Gateway", "504 Gateway Timeout"])
async def test_other_errors_are_lost_at_once(status):
    async with serving(http(b"{}", "Retry-After: 0", status=status)) as (port, _):
        assert (await sent(port)).lost.startswith(status[:3])


async def test_a_slow_reader_gets_the_whole_answer():
    async with serving(right(BIG)) as (port, _):
        outcome = await sent(port, question=BIG, stall_s=0.2)
    assert (outcome.lost, outcome.wrong) == ("", "")
    assert outcome.seconds >= 0.2


async def test_a_slow_readers_answer_that_is_cut_off():
    async with serving(right(BIG)[:-10], close=True) as (port, _):
        outcome = await sent(port, question=BIG, stall_s=0.1)
    assert outcome.cut


async def test_no_answer_within_the_deadline():
    async with serving(right(BIG)[:-10]) as (port, ended):
        outcome = await sent(port, question=BIG, patience=Patience(seconds=1))
    assert outcome.lost.endswith("waiting for the answer")
    assert all(each.is_set() for each in ended)


async def test_a_stream_ends_in_a_result_or_in_an_error():
    question = KnownRequest("abc", "en", "de", "cba", copies=2, stream=True)
    kind = "Content-Type: text/event-stream; charset=utf-8"
    delta = b'event: delta\ndata: {"index":0,"text":"cba"}\n\n'
    whole = delta + b'event: result\ndata: {"translation":["cba","cba"]}\n\n'
    failed = delta + b'event: error\ndata: {"error":{"code":"timeout"}}\n\n'
    async with serving(http(whole, kind), http(failed, kind)) as (port, _):
        outcome = await sent(port, question=question)
        assert (outcome.lost, outcome.wrong) == ("", "")
        outcome = await sent(port, question=question)
        assert (outcome.wrong, outcome.cut) == ("", True)
        assert "timeout" in outcome.lost


async def test_a_client_that_leaves_closes_its_connection():
    async with serving(b"") as (port, ended):
        client = CheckingClient()
        leaving = asyncio.ensure_future(client.post(port, "/translate", numbered_at(0).body))
        async with asyncio.timeout(5):
            while not ended:  # noqa: ASYNC110 - what is waited for sets no event
                await asyncio.sleep(0.005)
            leaving.cancel()
            await ended[0].wait()


def test_texts_of_different_lengths_are_different():
    questions = [lengthened(number, number % 7) for number in range(100)]
    assert len({question.text for question in questions}) == 100
    assert len(lengthened(3, 25).text) > len(lengthened(3, 0).text)
