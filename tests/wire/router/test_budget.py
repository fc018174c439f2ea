"""One budget: overload behind several routers ends in a translation or in 503 with Retry-After, in time."""

import asyncio
from collections import Counter
from typing import Any

import aiohttp
import pytest

from dragoman_router.routing.deployments import Replica

BUDGET_S = 5.0
TEXT = {"source_lang": "en", "target_lang": "de"}


def words(number: int) -> str:
    """A text of its own, without digits, which a guard would miss in the scripted engine's answer."""
    return "Hello " + "".join("abcdefghij"[int(digit)] for digit in str(number))


async def test_two_routers_and_a_slow_survivor(start_router: Any, start_scripted: Any) -> None:
    sequences, service_s = 12, 2.0
    flags = ("--max-num-seqs", str(sequences), "--request-timeout-s", str(BUDGET_S))
    pod = start_scripted(*flags, first_token_s=service_s)
    await asyncio.to_thread(pod.wait_for, "/readyz")
    routers = [await start_router(request_timeout_s=BUDGET_S) for _ in range(2)]
    for router in routers:
        gone = Replica(name="gone", host="127.0.0.1", port=1, uid="gone")
        left = Replica(name="left", host="127.0.0.1", port=pod.port, uid="left")
        router.serve("one", gone, left, max_in_flight=4 * sequences)
    # Eight times what the survivor can do in the budget.
    demand = round(8 * BUDGET_S * sequences / service_s)
    loop = asyncio.get_running_loop()

    async def one(number: int) -> tuple[int, bool, float]:
        began_s = loop.time()
        async with http.post(
            f"{routers[number % 2].url}/translate", json=TEXT | {"text": words(number)}
        ) as answer:
            await answer.read()
            return answer.status, "retry-after" in answer.headers, loop.time() - began_s

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        answers = await asyncio.gather(*map(one, range(demand)))
    statuses = Counter(status for status, _, _ in answers)
    assert set(statuses) == {200, 503}, statuses
    assert statuses[200] >= sequences
    assert all(retry for status, retry, _ in answers if status == 503)
    # Generous: a machine under load starts and ends its exchanges late.
    assert max(seconds for _, _, seconds in answers) < 2 * BUDGET_S
    for router in routers:
        assert router.state.active == router.state.fleet.backends["default/one"].in_flight == 0


async def test_a_replica_gets_what_is_left(router: Any, start_upstream: Any) -> None:
    one = await start_upstream()
    router.serve("one", one.replica())
    assert (await router.translate())[0] == 200
    assert (await router.translate(headers={"X-Request-Timeout": "7"}))[0] == 200
    assert (await router.translate(headers={"X-Request-Timeout": "1e9"}))[0] == 200
    lefts = [float(each.headers["x-request-timeout"]) for each in one.translations]
    assert 20 < lefts[0] <= 30
    assert 0 < lefts[1] <= 7
    assert 20 < lefts[2] <= 30


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "soon", ""])
async def test_a_limit_that_is_none_is_refused(router: Any, start_upstream: Any, limit: str) -> None:
    router.serve("one", (await start_upstream()).replica())
    status, answer, _ = await router.translate(headers={"X-Request-Timeout": limit})
    assert (status, answer["error"]["code"]) == (422, "invalid_field")


async def test_the_queue_before_busy_replicas_is_part_of_the_budget(
    start_router: Any, start_upstream: Any, until: Any
) -> None:
    router, one = await start_router(request_timeout_s=0.5, max_queue_s=60), await start_upstream()
    finish = asyncio.Event()

    async def slow(exchange: Any) -> None:
        await finish.wait()
        await exchange.answer({})

    one.script = slow
    router.serve("one", one.replica(), max_in_flight=1)
    backend = router.state.fleet.backends["default/one"]
    first = asyncio.create_task(router.translate())
    await until(lambda: backend.in_flight)
    status, answer, headers = await router.translate()
    assert (status, answer["error"]["code"]) == (503, "no_replica")
    assert int(headers["retry-after"]) >= 1
    finish.set()
    await first


async def test_the_time_in_which_a_replica_starts_is_not(
    start_router: Any, start_upstream: Any, until: Any
) -> None:
    router, one = await start_router(request_timeout_s=0.5, max_queue_s=60), await start_upstream()
    router.serve("one")
    backend = router.state.fleet.backends["default/one"]
    waits = asyncio.create_task(router.translate())
    hurried = await router.translate(headers={"X-Request-Timeout": "0.7"})
    assert hurried[0] == 503
    assert len(backend.queue) == 1
    router.serve("one", one.replica())
    assert (await waits)[0] == 200


async def test_a_refusal_for_load_is_learned_from(router: Any, start_upstream: Any, until: Any) -> None:
    one, most, running = await start_upstream(), 5, 0

    async def small(exchange: Any) -> None:
        nonlocal running
        if running >= most:
            await exchange.answer(
                {"error": {"code": "overloaded", "message": ""}}, 503, "x-dragoman-refused: overloaded\r\n"
            )
            return
        running += 1
        await asyncio.sleep(0.02)
        running -= 1
        await exchange.answer({})

    one.script = small
    router.serve("one", one.replica(), max_in_flight=64)
    answers = await asyncio.gather(*(router.translate() for _ in range(60)))
    assert {status for status, _, _ in answers} == {200}
    (endpoint,) = router.state.fleet.backends["default/one"].endpoints.values()
    assert 1 <= endpoint.limit < 20


async def test_overload_is_refused_at_once(start_router: Any, start_upstream: Any) -> None:
    router, one = await start_router(request_timeout_s=4.0), await start_upstream()
    loop = asyncio.get_running_loop()

    async def slow(exchange: Any) -> None:
        await asyncio.sleep(0.1)
        await exchange.answer({})

    one.script = slow
    router.serve("one", one.replica(), max_in_flight=2)
    took: list[tuple[int, float]] = []

    async def send() -> None:
        began_s = loop.time()
        status, _, headers = await router.translate()
        assert status == 200 or int(headers["retry-after"]) >= 1
        took.append((status, loop.time() - began_s))

    # Twenty a second are answered, fifty arrive.
    async with asyncio.TaskGroup() as group:
        for _ in range(300):
            group.create_task(send())
            await asyncio.sleep(0.02)

    refused = sorted(seconds for status, seconds in took if status == 503)
    assert {status for status, _ in took} == {200, 503}
    assert refused[len(refused) // 2] < 0.5
    assert max(seconds for status, seconds in took if status == 200) < 4.5


@pytest.mark.parametrize("queued", [True, False])
async def test_a_time_out_is_the_queues_where_the_request_was_queued(
    start_router: Any, start_upstream: Any, until: Any, queued: bool
) -> None:
    router, one = await start_router(request_timeout_s=3.0), await start_upstream()

    async def late(exchange: Any) -> None:
        if exchange.headers.get("x-first"):
            await asyncio.sleep(1.0)
            await exchange.answer({})
        else:
            await exchange.answer({"error": {"code": "timeout", "message": "send less text"}}, 504)

    one.script = late
    router.serve("one", one.replica(), max_in_flight=1)
    backend = router.state.fleet.backends["default/one"]
    first = asyncio.create_task(router.translate(headers={"X-First": "1"}))
    await until(lambda: backend.in_flight)
    if not queued:
        await first
    status, answer, headers = await router.translate()

    if queued:
        assert (status, answer["error"]["code"]) == (503, "no_replica")
        assert "queued for" in answer["error"]["message"]
        assert int(headers["retry-after"]) >= 1
    else:
        assert (status, answer["error"]["code"]) == (504, "timeout")
    await first


async def test_a_replica_that_answers_too_late_because_of_the_queue_is_no_time_out(
    start_router: Any, start_upstream: Any, until: Any
) -> None:
    router, one = await start_router(request_timeout_s=1.0), await start_upstream()
    finish = asyncio.Event()

    async def once(exchange: Any) -> None:
        if exchange.headers.get("x-first"):
            await asyncio.sleep(0.5)
        elif exchange.target == "/translate":
            await finish.wait()
        await exchange.answer({})

    one.script = once
    router.serve("one", one.replica(), max_in_flight=1)
    backend = router.state.fleet.backends["default/one"]
    first = asyncio.create_task(router.translate(headers={"X-First": "1"}))
    await until(lambda: backend.in_flight)
    status, answer, _ = await router.translate()

    assert (status, answer["error"]["code"]) == (503, "no_replica")
    finish.set()
    await first
