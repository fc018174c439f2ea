"""Replicas that die, refuse, leave or are not there yet: the caller gets one answer."""

import asyncio
from typing import Any

import pytest

from dragoman_router.fleet import background as tending


async def refuse_connections(upstream: Any) -> None:
    await upstream.stop()


async def reset(exchange: Any) -> None:
    exchange.reset()


async def half_an_answer(exchange: Any) -> None:
    await exchange.write(b'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"tr')
    exchange.reset()


async def draining(exchange: Any) -> None:
    if exchange.target == "/readyz":
        await exchange.answer({}, 503)
    else:
        await exchange.answer(
            {"error": {"code": "draining", "message": "…"}}, 503, "x-dragoman-refused: draining\r\n"
        )


async def overloaded(exchange: Any) -> None:
    await exchange.answer({"detail": "any shape"}, 503, "x-dragoman-refused: overloaded\r\n")


@pytest.mark.parametrize("script", [reset, half_an_answer, draining, overloaded])
async def test_another_replica_answers(router: Any, start_upstream: Any, script: Any) -> None:
    bad, good = await start_upstream("bad"), await start_upstream("good")
    router.serve("a", bad.replica(), good.replica())
    bad.script = script
    for _ in range(20):
        status, body, headers = await router.translate()
        assert (status, body) == (200, {"by": "good"})
        if "attempts=2" in headers["X-Dragoman-Route"]:
            break
    assert 1 <= len(bad.translations) <= 20


async def test_a_replica_that_cannot_be_reached_is_left_alone_and_comes_back(
    router: Any, start_upstream: Any, until: Any
) -> None:
    bad, good = await start_upstream("bad"), await start_upstream("good")
    router.serve("a", bad.replica(), good.replica())
    await bad.stop()
    backend = router.state.fleet.backends["default/a"]
    while backend.open_count == 2:
        assert (await router.translate())[1] == {"by": "good"}
    again = await start_upstream("bad", bad.port)
    await until(lambda: backend.open_count == 2)
    assert [each.target for each in again.received] == ["/readyz"]
    # It begins with a small share, so that it takes part where there is enough to do.
    answers = await asyncio.gather(*(router.translate() for _ in range(30)))
    assert {body["by"] for _, body, _ in answers} == {"bad", "good"}


async def test_a_kept_connection_that_was_closed_meanwhile_costs_nothing(
    router: Any, start_upstream: Any
) -> None:
    one = await start_upstream()
    router.serve("a", one.replica())

    async def once(exchange: Any) -> None:
        await exchange.answer({"by": "one"})
        exchange.writer.close()

    one.script = once
    for _ in range(30):
        assert (await router.translate())[0] == 200


async def test_the_only_replica_dies_and_its_successor_answers(
    router: Any, start_upstream: Any, until: Any
) -> None:
    first = await start_upstream("first")
    router.serve("a", first.replica())

    async def never(exchange: Any) -> None:
        await asyncio.sleep(60)

    first.script = never
    pending = [asyncio.ensure_future(router.translate()) for _ in range(10)]
    await until(lambda: len(first.received) == 10)
    await first.stop()
    backend = router.state.fleet.backends["default/a"]
    await until(lambda: len(backend.queue) == 10)
    assert backend.load().queued == 10
    second = await start_upstream("second")
    router.state.fleet.set_replicas("default/a", [second.replica()])
    for status, body, headers in await asyncio.gather(*pending):
        assert (status, body) == (200, {"by": "second"})
        assert "queued=" in headers["X-Dragoman-Route"]


@pytest.fixture
def soon_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tending, "SWEEP_S", 0.05)
    monkeypatch.setattr(tending, "UNRESPONSIVE_S", 0.1)
    monkeypatch.setattr(tending, "PROBE_TIMEOUT_S", 0.1)


async def nothing(exchange: Any) -> None:
    await asyncio.Event().wait()


@pytest.mark.usefixtures("soon_silent")
async def test_requests_of_a_replica_that_stops_to_respond_go_to_another(
    router: Any, start_upstream: Any, until: Any
) -> None:
    stopped, good = await start_upstream("stopped"), await start_upstream("good")
    router.serve("a", stopped.replica(), good.replica())
    stopped.script = nothing

    answers = await asyncio.gather(*(router.translate() for _ in range(20)))

    assert [(status, body) for status, body, _ in answers] == [(200, {"by": "good"})] * 20
    assert stopped.translations
    backend = router.state.fleet.backends["default/a"]
    assert backend.open_count == 1
    stopped.script = None
    await until(lambda: backend.open_count == 2)


@pytest.mark.usefixtures("soon_silent")
async def test_requests_of_the_only_replica_wait_until_it_responds_again(
    router: Any, start_upstream: Any, until: Any
) -> None:
    only = await start_upstream("only")
    router.serve("a", only.replica())
    only.script = nothing
    request = asyncio.ensure_future(router.translate())
    await until(lambda: len(router.state.fleet.backends["default/a"].queue) == 1)

    only.script = None

    assert (await request)[:2] == (200, {"by": "only"})


@pytest.mark.usefixtures("soon_silent")
async def test_requests_of_a_silent_replica_that_left_the_deployment_go_to_another(
    router: Any, start_upstream: Any, until: Any
) -> None:
    stopped, good = await start_upstream("stopped"), await start_upstream("good")
    router.serve("a", stopped.replica())
    stopped.script = nothing
    request = asyncio.ensure_future(router.translate())
    await until(lambda: stopped.translations)

    router.serve("a", good.replica())

    assert (await request)[:2] == (200, {"by": "good"})


@pytest.mark.usefixtures("soon_silent")
async def test_a_replica_that_answers_its_probe_keeps_its_slow_requests(
    router: Any, start_upstream: Any, until: Any
) -> None:
    slow, other = await start_upstream("slow"), await start_upstream("other")
    router.serve("a", slow.replica())
    finish = asyncio.Event()

    async def script(exchange: Any) -> None:
        if exchange.target != "/readyz":
            await finish.wait()
            await exchange.answer({"by": "slow"})
        else:
            await exchange.answer({}, 503)  # Not ready is an answer.

    slow.script = script
    request = asyncio.ensure_future(router.translate())
    await until(lambda: [each.target for each in slow.received].count("/readyz") >= 3)
    router.serve("a", slow.replica(), other.replica())
    finish.set()

    assert (await request)[:2] == (200, {"by": "slow"})
    assert len(slow.translations) == 1


async def test_an_error_of_the_replica_is_handed_on_and_not_retried(router: Any, start_upstream: Any) -> None:
    one, two = await start_upstream("one"), await start_upstream("two")
    router.serve("a", one.replica(), two.replica())

    async def fails(exchange: Any) -> None:
        await exchange.answer({"error": {"code": "output_empty", "message": "m"}}, 500)

    one.script = two.script = fails
    status, body, _ = await router.translate()
    assert (status, body["error"]["code"]) == (500, "output_empty")
    assert len(one.received) + len(two.received) == 1


async def test_a_request_that_breaks_every_replica_does_not_go_through_all(
    router: Any, start_upstream: Any
) -> None:
    replicas = [await start_upstream(f"r{at}") for at in range(6)]
    router.serve("a", *(each.replica() for each in replicas))
    for each in replicas:
        each.script = reset
    status, body, _ = await router.translate()
    assert (status, body["error"]["code"]) == (502, "upstream_failed")
    counts = [len(each.received) for each in replicas]
    assert sum(counts) == 3
    assert max(counts) == 1, "never twice to the same"


async def test_a_terminating_replica_is_notified_and_gets_no_new_requests(
    router: Any, start_upstream: Any, until: Any
) -> None:
    old, new = await start_upstream("old"), await start_upstream("new")
    router.serve("a", old.replica(), new.replica())
    answer_now = asyncio.Event()

    async def slow(exchange: Any) -> None:
        if exchange.target == "/translate":
            await answer_now.wait()
        await exchange.answer({"by": "old"})

    old.script = slow
    pending: list[Any] = []
    while not old.received:
        pending.append(asyncio.ensure_future(router.translate()))
        await until(lambda: len(old.received) + len(new.received) == len(pending))
    fleet = router.state.fleet
    fleet.set_replicas("default/a", [old.replica(ready=False, terminating=True), new.replica()])
    for _ in range(10):
        assert (await router.translate())[1] == {"by": "new"}
    await until(lambda: any(each.target == "/drained" for each in old.received))
    confirmation = next(each for each in old.received if each.target == "/drained")
    assert (confirmation.method, confirmation.headers["x-dragoman-router"]) == ("POST", "router-1")
    answer_now.set()
    assert {answer[0] for answer in await asyncio.gather(*pending)} == {200}
    assert all(each.target == "/translate" for each in old.translations)


async def test_requests_wait_for_a_deployment_at_zero(router: Any, start_upstream: Any, until: Any) -> None:
    router.serve("a")
    pending = asyncio.ensure_future(router.translate())
    backend = router.state.fleet.backends["default/a"]
    await until(lambda: backend.load().queued == 1)
    one = await start_upstream()
    router.state.fleet.set_replicas("default/a", [one.replica()])
    assert (await pending)[1] == {"by": "one"}
    assert backend.load().queued == 0


async def test_a_client_that_leaves_the_queue_is_forgotten(router: Any, until: Any) -> None:
    router.serve("a")
    backend = router.state.fleet.backends["default/a"]
    pending = asyncio.ensure_future(router.translate())
    await until(lambda: len(backend.queue) == 1)
    pending.cancel()
    await until(lambda: len(backend.queue) == 0)
    assert router.state.memory.used_bytes == 0


async def test_gauges_show_what_requests_hold(router: Any, until: Any) -> None:
    router.serve("a")
    gauge = router.state.metrics.registry.get_sample_value
    sending = asyncio.ensure_future(router.translate())
    await until(lambda: gauge("dragoman_router_requests_active") == 1)
    await until(lambda: gauge("dragoman_router_body_bytes") > 0)
    sending.cancel()
    await until(lambda: gauge("dragoman_router_requests_active") == 0)
    assert gauge("dragoman_router_body_bytes") == 0


@pytest.mark.parametrize(
    ("path", "body", "shape"),
    [
        ("/translate", {"text": "x", "source_lang": "en", "target_lang": "de"}, "error.code"),
        ("/translate", {"q": "x", "source": "en", "target": "de"}, "error"),
        ("/v2/translate", {"text": ["x"], "source_lang": "EN", "target_lang": "DE"}, "message"),
        ("/language/translate/v2", {"q": ["x"], "source": "en", "target": "de"}, "error.errors"),
        ("/translate?api-version=3.0&from=en&to=de", [{"Text": "x"}], "error.code"),
        ("/v1/chat/completions", {"model": "a", "messages": []}, "error.type"),
    ],
)
async def test_a_queue_timeout_is_reported_in_the_error_format_of_the_api(
    start_router: Any, path: str, body: object, shape: str
) -> None:
    router = await start_router(max_queue_s=0.05)
    router.serve("a")
    status, answer, headers = await router.post(path, body)
    assert status == 503
    assert int(headers["Retry-After"]) >= 1
    for part in shape.split("."):
        answer = answer[part]
    assert answer


async def test_the_queue_is_bounded_and_fair(
    start_router: Any, start_upstream: Any, until: Any, tmp_path: Any
) -> None:
    for name in ("greedy", "modest"):
        (tmp_path / name).write_text(f"key-of-{name}")
    router = await start_router(max_queued_requests=4, max_queue_s=5, keys_dir=tmp_path)
    router.serve("a", max_in_flight=1)
    backend = router.state.fleet.backends["default/a"]

    def send(name: str) -> Any:
        return asyncio.ensure_future(router.translate(text=name, headers={"X-API-Key": f"key-of-{name}"}))

    greedy = [send("greedy") for _ in range(4)]
    await until(lambda: len(backend.queue) == 4)
    assert (await send("greedy"))[0] == 503
    modest = send("modest")
    await until(lambda: any(each.done() for each in greedy))
    pushed_out = [each for each in greedy if each.done()]
    assert [each.result()[0] for each in pushed_out] == [429]
    one = await start_upstream()
    router.state.fleet.set_replicas("default/a", [one.replica()])
    await asyncio.gather(modest, *greedy)
    order = [b"modest" in each.body for each in one.translations]
    assert order.index(True) <= 1, "callers take turns"


async def test_a_request_at_a_replica_that_is_gone_still_has_its_deadline(
    start_router: Any, start_upstream: Any, until: Any
) -> None:
    router = await start_router(request_timeout_s=0.5)
    one = await start_upstream()
    router.serve("a", one.replica())

    async def never(exchange: Any) -> None:
        await asyncio.sleep(60)

    one.script = never
    pending = asyncio.ensure_future(router.translate())
    await until(lambda: one.received)
    # Its node was lost: the connection is not closed.
    router.state.fleet.set_replicas("default/a", [])
    status, body, _ = await pending
    assert (status, body["error"]["code"]) == (504, "timeout")
    await until(lambda: not router.state.fleet.departed)


async def test_a_deployment_that_goes_lets_go_of_who_waits_for_it(router: Any, until: Any) -> None:
    router.serve("a")
    pending = asyncio.ensure_future(router.translate())
    await until(lambda: len(router.state.fleet.backends["default/a"].queue) == 1)
    router.state.fleet.remove("default/a")
    status, body, _ = await pending
    assert (status, body["error"]["code"]) == (404, "unknown_deployment")
