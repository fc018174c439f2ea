"""The tuning bench's figures, computed by hand, and its load."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "bench"))

from tuning.figures import Rollout, best, interval, table
from tuning.load import Load

from dragoman_tune.closed_loop import Sample
from dragoman_tune.requests import Answer, Request

GRID = {16: {160: 1000.0, 24: 900.0}, 128: {160: 3000.0, 24: 880.0}}


def sample(began_s: float, ended_s: float, tokens: int = 10, error: str | None = None) -> Sample:
    return Sample(began_s, ended_s, tokens, Answer(error=error))


def test_an_interval_has_the_requests_that_ended_in_it() -> None:
    samples = [
        sample(0, 1),
        sample(0, 5),
        sample(3, 6, tokens=30),
        sample(4, 9.9, error="status 503"),
        sample(9, 10),
    ]
    found = interval(samples, 5, 10)
    assert (found["answered"], found["lost"], found["errors"]) == (2, 1, {"status 503": 1})
    assert found["tokens_per_s"] == (10 + 30) / 5
    assert found["requests_per_s"] == 0.4
    # Of the three requests, with the lost one as the slowest.
    assert (found["p50_s"], found["p95_s"]) == (5, None)


def test_an_interval_without_requests() -> None:
    found = interval([], 0, 5)
    assert (found["answered"], found["lost"], found["tokens_per_s"], found["p50_s"]) == (0, 0, 0.0, None)


@pytest.mark.parametrize(
    ("during", "after", "lost", "paid_back"),
    [(600.0, 3000.0, 40_000.0, 20.0), (600.0, 900.0, 40_000.0, None), (1200.0, 3000.0, -20_000.0, 0.0)],
    ids=["gain", "no gain", "faster meanwhile"],
)
def test_cost_of_a_rollout(during: float, after: float, lost: float, paid_back: float | None) -> None:
    rollout = Rollout(16, 128, 100.0, 1000.0, during, after)
    assert rollout.lost_tokens == lost
    assert rollout.paid_back_s == paid_back


def test_the_best_of_the_grid_is_that_of_the_load() -> None:
    assert best(GRID, 160) == (128, 3000.0)
    assert best(GRID, 24) == (16, 900.0)
    assert best(GRID, 320) is None


def test_the_table_has_the_chosen_value_beside_the_best() -> None:
    steady = {"tokens_per_s": 2900.0, "p95_s": 1.234}
    whole = {"answered": 99, "lost": 1}
    rollouts = [vars(Rollout(16, 128, 100.0, 1000.0, 600.0, 3000.0))]
    phases = [
        {"in_flight": 160, "size": 128, "steady": steady, "whole": whole, "rollouts": rollouts},
        {"in_flight": 24, "size": 128, "steady": steady, "whole": whole, "rollouts": []},
        {"in_flight": 320, "size": 64, "steady": {**steady, "p95_s": None}, "whole": whole, "rollouts": []},
    ]
    _, _, first, second, third, _, *rates = table(phases, GRID).splitlines()
    assert first == (
        "| 160 | 128 | 2900 | 3000 | 3000 at 128 | 1.00 | 16 → 128 in 100 s | 40000 | 20 s | 1.23 | 100 | 1 |"
    )
    assert second == "| 24 | 128 | 2900 | 880 | 900 at 16 | 0.98 | none | 0 | – | 1.23 | 100 | 1 |"
    assert third == "| 320 | 64 | 2900 | – | – | – | none | 0 | – | – | 100 | 1 |"
    assert rates[-2:] == ["| 16 | 900 | 1000 |", "| 128 | 880 | 3000 |"]


def test_a_table_of_nothing_measured() -> None:
    assert table([], {}).endswith("The grid was not measured.")


async def test_so_many_requests_are_in_flight_and_none_is_dropped() -> None:
    served, most = 0, 0
    release = asyncio.Semaphore(0)

    async def send(request: Request) -> Answer:
        nonlocal served, most
        served += 1
        most = max(most, served)
        await release.acquire()
        served -= 1
        return Answer()

    async def settled(in_flight: int) -> None:
        async with asyncio.timeout(5):
            while served != in_flight:
                release.release()
                await asyncio.sleep(0)

    def requests():
        while True:
            yield Request("text", "en", "de", 5)

    load = Load(send, requests())
    for in_flight in (8, 3, 12):
        load.keep(in_flight)
        await settled(in_flight)
    assert most == 12
    ended = len(load.samples)
    closing = asyncio.create_task(load.aclose())
    await settled(0)
    await closing
    assert len(load.samples) == ended + 12
