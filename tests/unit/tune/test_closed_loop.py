import asyncio
from collections.abc import Iterator
from itertools import repeat

import pytest

from dragoman_tune.closed_loop import Pace, Sample, Window, closed_loop
from dragoman_tune.errors import ServerError
from dragoman_tune.figures import figures, quantile
from dragoman_tune.requests import Answer, SampleRequest

ONE = SampleRequest("a", "en", "de", 10)


def endless() -> Iterator[SampleRequest]:
    return repeat(ONE)


async def test_so_many_are_in_flight_and_never_more() -> None:
    running, most = 0, 0

    async def answer(_: SampleRequest) -> Answer:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return Answer()

    window = await closed_loop(answer, endless(), 7, Pace(0.3, 1, 1))
    assert most == 7
    assert window.steady
    assert running == 0
    assert window.samples
    assert all(window.began_s <= sample.ended_s < window.ended_s for sample in window.samples)


async def test_a_window_before_all_were_answered_once_is_not_steady() -> None:
    async def answer(_: SampleRequest) -> Answer:
        await asyncio.sleep(60)
        return Answer()

    window = await closed_loop(answer, endless(), 2, Pace(0.05, 0.05, 0.05))
    assert not window.steady
    assert figures(window).p95_s is None


async def test_a_server_that_ends_stops_the_loop_with_its_reason() -> None:
    answered = 0

    async def answer(_: SampleRequest) -> Answer:
        nonlocal answered
        answered += 1
        await asyncio.sleep(0.01)
        return Answer()

    with pytest.raises(ServerError, match="killed by signal 9"):
        await closed_loop(
            answer,
            endless(),
            3,
            Pace(60, 60, 60),
            ended=lambda: "killed by signal 9" if answered > 5 else None,
        )


async def test_failures_are_counted_apart_and_do_not_stop_the_loop() -> None:
    turn = 0

    async def answer(_: SampleRequest) -> Answer:
        nonlocal turn
        turn += 1
        await asyncio.sleep(0.001)
        return Answer(error="status 503") if turn % 10 == 0 else Answer(queue_s=0.1, compute_s=0.2)

    found = figures(await closed_loop(answer, endless(), 4, Pace(1.0, 5, 1)))
    assert found.answered > 0
    assert found.errors["status 503"] > 0
    assert found.queue_s == pytest.approx(0.1)
    assert found.compute_s == pytest.approx(0.2)


def test_figures_are_over_the_window() -> None:
    samples = tuple(Sample(0.0, 1.0 + at, 10, Answer()) for at in range(4))
    found = figures(Window(1.0, 5.0, True, samples))
    assert found.requests_per_s == 1.0
    assert found.output_tokens_per_s == 10.0
    assert (found.p50_s, found.p95_s) == (2.0, 4.0)


@pytest.mark.parametrize(("failed", "p50_s", "p95_s"), [(4, 1.0, 1.0), (6, 1.0, None), (60, None, None)])
def test_a_request_without_an_answer_is_later_than_any_with_one(
    failed: int, p50_s: float | None, p95_s: float | None
) -> None:
    """A server that refuses at once what it cannot hold would look quick."""
    good = [Sample(0.0, 1.0, 10, Answer())] * (100 - failed)
    bad = [Sample(0.5, 1.0, 10, Answer(error="status 503"))] * failed
    found = figures(Window(1.0, 2.0, True, (*good, *bad)))
    assert (found.p50_s, found.p95_s) == (p50_s, p95_s)
    assert found.answered == 100 - failed
    assert found.mean_s == 1.0


def test_quantiles_are_values_that_were_there() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3, 1, 2], 0.5) == 2
    assert quantile(list(range(1, 101)), 0.95) == 95
