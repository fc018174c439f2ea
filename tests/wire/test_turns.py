"""Pods that share a GPU are awake in turn, by a real Redis; the scripted engines fail where two are awake."""

import asyncio
import random
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_service.engine import turns
from dragoman_service.engine.turns import Turns
from dragoman_service.errors import StartError

ASLEEP, WAKES = "dragoman_engine_asleep", "dragoman_engine_wakes_total"


@pytest.fixture
def start_sharing(start_scripted: Any, own_redis: Any, tmp_path: Path) -> Callable[..., Any]:
    """Start pods that share one GPU."""

    def start(*arguments: str, **script: Any) -> Any:
        return start_scripted(
            *("--sleep-after-s", "900", "--turns-url", own_redis.url, "--turns-device", "GPU-1", *arguments),
            **({"sleep_s": 0.05, "wake_s": 0.05, "memory": str(tmp_path / "memory")} | script),
        )

    return start


def test_four_pods_translate_all_of_their_requests_with_one_of_them_awake(start_sharing: Any) -> None:
    pods = [start_sharing(first_token_s=0.01) for _ in range(4)]
    for pod in pods:
        pod.wait_for("/readyz")
    requests = [(pod, f"text {number}") for pod in pods for number in range(8)]
    random.Random(1).shuffle(requests)
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda each: each[0].translate(each[1]), requests))
    assert [answer.json()["translation"] for answer in answers] == [text[::-1] for _, text in requests]
    assert sum(pod.metric(WAKES) for pod in pods) >= 4
    assert sum(pod.metric(ASLEEP) for pod in pods) >= 3


def test_a_busy_pod_finishes_what_it_generates_and_lets_another_have_its_turn(start_sharing: Any) -> None:
    busy, other = start_sharing(first_token_s=0.5), start_sharing()
    for pod in (busy, other):
        pod.wait_for("/readyz")
    stop = threading.Event()
    answers: list[int] = []

    def keep_busy(client: int) -> None:
        number = 0
        while not stop.is_set():
            answers.append(busy.translate(f"text {number} of {client}").status_code)
            number += 1

    with ThreadPoolExecutor(4) as threads:
        for client in range(4):
            threads.submit(keep_busy, client)
        try:
            busy.wait_for_metric("vllm:num_requests_running", 4)
            began_s = time.monotonic()
            assert other.translate("now").json()["translation"] == "won"
            waited_s = time.monotonic() - began_s
            busy.wait_for_metric("vllm:num_requests_running", 4)
        finally:
            stop.set()
    assert waited_s < 5 + 3  # its turn of 5 s, one generation, two changes
    assert set(answers) == {200}
    assert other.metric("dragoman_engine_turn_wait_seconds_count") >= 2


def test_requests_wait_while_redis_does_not_answer(start_sharing: Any, own_redis: Any) -> None:
    first, second = start_sharing(), start_sharing()
    for pod in (first, second):
        pod.wait_for("/readyz")
    assert second.translate("one").json()["translation"] == "eno"
    own_redis.kill()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(first.translate, "two")
        first.wait_for_metric("dragoman_requests_in_flight", 1)
        first.wait_for_log("does not answer")
        assert second.translate("three").json()["translation"] == "eerht"  # it has the turn
        own_redis.start()
        assert waiting.result().json()["translation"] == "owt"


@pytest.fixture
def registries() -> Iterator[CollectorRegistry]:
    return (CollectorRegistry() for _ in iter(int, 1))


def waiting_for(redis: Any) -> int:
    """Number of pods that wait for a turn, ended ones included."""
    return int(redis.command("ZCARD dragoman:turns:{GPU-1}:waiting")[1:])


async def test_turns_go_by_arrival_and_the_turn_of_a_dead_pod_ends(
    own_redis: Any, registries: Iterator[CollectorRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "TURN_TTL_S", 1.0)
    monkeypatch.setattr(turns, "GRACE_S", 0.1)
    dead, gone, one, two, three = (Turns(own_redis.url, "GPU-1", "m", next(registries)) for _ in range(5))
    other_device = Turns(own_redis.url, "GPU-2", "m", next(registries))
    await dead.take()  # and renews it never
    await other_device.take()
    order: list[str] = []

    async def turn(name: str, of: Turns) -> None:
        await of.take()
        order.append(name)
        await of.give_back()

    cancelled = asyncio.create_task(gone.take())
    waiting: list[asyncio.Task[None]] = []
    async with asyncio.timeout(5):
        for name, of in (("one", one), ("two", two), ("three", three)):
            waiting.append(asyncio.create_task(turn(name, of)))
            while waiting_for(own_redis) != 1 + len(waiting):  # noqa: ASYNC110 - in this order
                await asyncio.sleep(0.01)
    assert order == []
    cancelled.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    assert order == ["one", "two", "three"]
    for each in (dead, gone, one, two, three, other_device):
        await each.aclose()


async def test_a_pod_with_the_turn_learns_that_another_waits_and_that_it_was_cut_off(
    own_redis: Any, registries: Iterator[CollectorRegistry], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "SAFE_S", 0.5)
    monkeypatch.setattr(turns, "GRACE_S", 0.1)
    monkeypatch.setattr(turns, "TIMEOUT_S", 0.2)
    one, two = (Turns(own_redis.url, "GPU-1", "m", next(registries)) for _ in range(2))
    watching = asyncio.create_task(one.watch())
    await one.take()
    own_redis.command("DEL dragoman:turns:{GPU-1}:owner")
    async with asyncio.timeout(5):
        while b":1" not in own_redis.command("EXISTS dragoman:turns:{GPU-1}:owner"):  # noqa: ASYNC110 - renewed
            await asyncio.sleep(0.01)
    assert not one.is_wanted
    waiting = asyncio.create_task(two.take())
    async with asyncio.timeout(5):
        while not one.is_wanted:  # noqa: ASYNC110 - it sets no event
            await asyncio.sleep(0.01)
        await one.give_back()
        await waiting
        assert not one.is_wanted
        await two.give_back()
        await one.take()
        own_redis.pause()
        while not one.is_wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    own_redis.resume()
    watching.cancel()
    for each in (one, two):
        await each.aclose()


def test_a_pod_without_a_gpu_needs_a_name_for_what_it_shares() -> None:
    with pytest.raises(StartError, match="this pod has 0: set --turns-device"):
        turns.device_of([])
