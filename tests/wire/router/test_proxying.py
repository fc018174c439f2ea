"""Bytes through the router, both ways; and what happens when either side goes away."""

import asyncio
import json
from typing import Any

import pytest


async def test_the_body_and_the_answer_come_through_unchanged(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    body = b'{ "text" : "Gr\\u00fc\\u00dfe \xf0\x9f\x98\x80", "source_lang":"en","target_lang":"de", "more": [1, 2] }'

    async def answer(exchange: Any) -> None:
        await exchange.write(
            b"HTTP/1.1 201 Odd\r\nContent-Length: 9\r\nX-Own: Value\r\nKeep-Alive: timeout=5\r\n\r\n\x00\x01{odd}\xff\n"
        )

    one.script = answer
    headers = {
        "X-Mine": "kept",
        "Connection": "x-hop",
        "X-Hop": "dropped",
        "Content-Type": "application/json",
    }
    async with router.http.post(router.url + "/translate?a=b%20c", data=body, headers=headers) as got:
        assert (got.status, await got.read()) == (201, b"\x00\x01{odd}\xff\n")
        assert got.headers["X-Own"] == "Value"
        assert "Keep-Alive" not in got.headers
        assert got.headers["X-Dragoman-Deployment"] == "default/a"
        assert got.headers["X-Dragoman-Endpoint"] == f"one@127.0.0.1:{one.port}"
        assert got.headers["X-Dragoman-Route"] == "pair; least-in-flight"
    request = one.received[0]
    assert request.body == body
    assert request.target == "/translate?a=b%20c"
    assert request.headers["x-mine"] == "kept"
    assert "x-hop" not in request.headers
    assert request.headers["x-dragoman-router"] == "router-1"
    assert request.headers["traceparent"].count("-") == 3


async def test_a_chunked_request_arrives_whole_and_with_a_length(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    body = json.dumps({"text": "x" * 300_000, "source_lang": "en", "target_lang": "de"}).encode()

    async def parts() -> Any:
        for at in range(0, len(body), 50_000):
            yield body[at : at + 50_000]

    async with router.http.post(router.url + "/translate", data=parts()) as got:
        assert got.status == 200
    assert one.received[0].body == body
    assert one.received[0].headers["content-length"] == str(len(body))
    assert "transfer-encoding" not in one.received[0].headers


async def test_events_come_as_they_are_written(router: Any, start_upstream: Any, until: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    go_on = asyncio.Event()

    async def stream(exchange: Any) -> None:
        await exchange.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        await exchange.write(b"d\r\ndata: first\n\n\r\n")
        await go_on.wait()
        await exchange.write(b"e\r\ndata: second\n\n\r\n0\r\n\r\n")

    one.script = stream
    body = {"model": "a", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    async with router.http.post(router.url + "/v1/chat/completions", json=body) as got:
        async with asyncio.timeout(5):
            assert await got.content.readany() == b"data: first\n\n"
        go_on.set()
        assert await got.content.read() == b"data: second\n\n"
    await until(lambda: not router.state.fleet.backends["default/a"].in_flight)


async def test_a_client_that_leaves_ends_the_work_at_once(
    router: Any, start_upstream: Any, until: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())

    async def never(exchange: Any) -> None:
        await exchange.writer.wait_closed()

    one.script = never
    pending = asyncio.ensure_future(router.translate())
    await until(lambda: one.received)
    pending.cancel()
    await until(lambda: not router.state.fleet.backends["default/a"].in_flight)
    assert router.state.active == 0
    assert router.state.memory.used_bytes == 0


async def test_a_slow_client_holds_back_the_replica_and_not_the_memory(
    router: Any, start_upstream: Any, until: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    size, written = 64 * 1024 * 1024, 0

    async def flood(exchange: Any) -> None:
        nonlocal written
        await exchange.write(f"HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n".encode())
        while written < size:
            await exchange.write(b"x" * 65536)
            written += 65536

    one.script = flood
    reader, writer = await asyncio.open_connection("127.0.0.1", router.port)
    body = b'{"text":"x","source_lang":"en","target_lang":"de"}'
    writer.write(b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
    await reader.readuntil(b"\r\n\r\n")
    before = -1
    while before != written:
        before = written
        await asyncio.sleep(0.2)
    assert written < 32 * 1024 * 1024
    writer.transport.abort()
    await until(lambda: not router.state.fleet.backends["default/a"].in_flight)


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(
    router: Any, start_upstream: Any
) -> None:
    one, two = await start_upstream("one"), await start_upstream("two")
    router.serve("a", one.replica(), two.replica())

    async def half(exchange: Any) -> None:
        await exchange.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        await asyncio.sleep(0.05)
        exchange.reset()

    one.script = two.script = half
    got = await router.raw(
        b"POST /translate HTTP/1.1\r\nhost: x\r\ncontent-length: 50\r\n\r\n"
        b'{"text":"x","source_lang":"en","target_lang":"de"}'
    )
    assert got.endswith(b"3\r\nabc\r\n"), "no last chunk, no second answer"
    assert len(one.received) + len(two.received) == 1, "nothing is retried after the first byte"


async def test_expect_continue_is_answered_by_the_router(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    body = b'{"text":"x","source_lang":"en","target_lang":"de"}'
    got = await router.raw(
        b"POST /translate HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\nconnection: close\r\n"
        b"content-length: %d\r\n\r\n" % len(body),
        body,
    )
    assert got.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    assert "expect" not in one.received[0].headers


async def test_connections_to_replicas_are_kept(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    for _ in range(20):
        assert (await router.translate())[0] == 200
    assert one.connections == 1


async def test_a_trace_is_passed_on(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await router.translate(headers={"traceparent": given, "X-Forwarded-For": "192.0.2.1"})
    assert one.received[0].headers["traceparent"] == given
    assert one.received[0].headers["x-forwarded-for"] == "192.0.2.1, 127.0.0.1"


@pytest.mark.parametrize("length", [0, 10, 70_000])
async def test_answers_without_a_length_end_with_the_connection(
    router: Any, start_upstream: Any, length: int
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())

    async def until_close(exchange: Any) -> None:
        await exchange.write(b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * length)
        exchange.writer.close()

    one.script = until_close
    async with router.http.post(
        router.url + "/translate", json={"text": "x", "source_lang": "en", "target_lang": "de"}
    ) as got:
        assert (got.status, len(await got.read())) == (200, length)


async def test_pipelined_requests_are_answered_in_turn(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())

    async def echo(exchange: Any) -> None:
        await exchange.answer(json.loads(exchange.body)["text"])

    one.script = echo
    requests = b""
    for text in (b"first", b"second", b"third"):
        body = b'{"text":"%s","source_lang":"en","target_lang":"de"}' % text
        last = b"connection: close\r\n" if text == b"third" else b""
        head = b"POST /translate HTTP/1.1\r\nhost: x\r\n%scontent-length: %d\r\n\r\n" % (last, len(body))
        requests += head + body
    got = await router.raw(requests)
    assert [got.index(text) for text in (b'"first"', b'"second"', b'"third"')] == sorted(
        got.index(text) for text in (b'"first"', b'"second"', b'"third"')
    )
