"""How many requests may wait is what the replicas answer in time, once that is known."""

import pytest

from dragoman_router.fleet.queue import FairQueue, QueuedRequest, QueueLimits
from dragoman_router.routing.pace import MIN_TAKEN, SHARE, WINDOW_S, QueueDrainRate

UNKNOWN = float("inf")


def steady(
    per_s: float, seconds: float, begin_s: float = 0.0, pace: QueueDrainRate | None = None
) -> QueueDrainRate:
    pace = pace or QueueDrainRate()
    for number in range(round(per_s * seconds) + 1):
        pace.took(begin_s + number / per_s)
    return pace


@pytest.mark.parametrize("per_s", [1.0, 20.0, 500.0])
def test_room_is_what_is_answered_in_the_time_that_is_left(per_s: float) -> None:
    pace = steady(per_s, 30)

    assert pace.per_s() == pytest.approx(per_s)
    assert pace.capacity(30, 0) == pytest.approx(SHARE * 30 * per_s)
    assert pace.capacity(30, 16) == pytest.approx(SHARE * 30 * per_s - 16)


def test_room_is_unbounded_until_the_pace_is_known() -> None:
    pace = QueueDrainRate()
    assert pace.capacity(30, 100) == UNKNOWN
    for _ in range(100):
        pace.took(5.0)
    assert pace.capacity(30, 100) == UNKNOWN, "a batch whose requests ended together"
    assert steady(1.0, MIN_TAKEN - 2).capacity(30, 0) == UNKNOWN


def test_a_request_without_a_limit_has_unbounded_room() -> None:
    assert steady(20, 10).capacity(float("inf"), 50) == float("inf")


def test_the_pace_follows_replicas_that_are_lost() -> None:
    pace = steady(50, 30)
    steady(5, 2 * WINDOW_S, 30, pace)

    assert pace.per_s() == pytest.approx(5)


def test_batches_count_by_their_mean() -> None:
    pace = QueueDrainRate()
    for batch in range(20):
        for _ in range(12):
            pace.took(batch * 1.2)

    assert pace.per_s() == pytest.approx(10, rel=0.2)


def test_the_pace_begins_anew_when_the_queue_is_empty() -> None:
    pace = steady(20, 10)
    pace.restart()

    assert pace.capacity(30, 0) == UNKNOWN


def test_a_queue_without_room_is_shared_as_a_full_one() -> None:
    queue: FairQueue[str] = FairQueue(QueueLimits(count=1000))
    for at in range(3):
        assert queue.add(QueuedRequest("greedy", 1, at, f"g{at}"), 3) is None
    own = QueuedRequest("greedy", 1, 3, "g3")

    assert queue.add(own, 3) is own
    out = queue.add(QueuedRequest("modest", 1, 4, "m0"), 3)
    assert out is not None
    assert out.request == "g2"
