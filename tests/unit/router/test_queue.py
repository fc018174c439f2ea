"""The queue: no request is lost, no client waits behind a greedy one, its bounds are kept."""

from hypothesis import given
from hypothesis import strategies as st

from dragoman_router.fleet.queue import FairQueue, QueuedRequest, QueueLimits

COMMANDS = st.lists(
    st.tuples(st.sampled_from(["add", "take", "remove"]), st.integers(0, 3), st.integers(0, 9))
)


@given(COMMANDS, st.integers(0, 6), st.integers(0, 30))
def test_bounds_hold_and_nothing_vanishes(
    commands: list[tuple[str, int, int]], count: int, size: int
) -> None:
    queue: FairQueue[int] = FairQueue(QueueLimits(count, size))
    inside: list[QueuedRequest[int]] = []
    for number, (command, caller, size_bytes) in enumerate(commands):
        if command == "add":
            queued = QueuedRequest(str(caller), size_bytes, float(number), number)
            out = queue.add(queued)
            if out is not queued:
                inside.append(queued)
            if out is not None and out is not queued:
                inside.remove(out)
        elif command == "take":
            taken = queue.take()
            assert (taken is None) == (not inside)
            if taken is not None:
                same = [each for each in inside if each.caller == taken.caller]
                assert taken is same[0], "first come, first served for each caller"
                inside.remove(taken)
        elif inside:
            assert queue.remove(inside.pop())
        assert len(queue) == len(inside) <= count
        assert sum(each.size_bytes for each in inside) <= size
        assert queue.oldest_since_s() == min((each.since_s for each in inside), default=None)


def test_callers_take_turns() -> None:
    queue: FairQueue[str] = FairQueue(QueueLimits())
    for at in range(100):
        queue.add(QueuedRequest("greedy", 1, at, f"g{at}"))
    queue.add(QueuedRequest("modest", 1, 100, "m0"))
    queue.add(QueuedRequest("modest", 1, 101, "m1"))
    taken = [queue.take() for _ in range(4)]
    assert [each.request for each in taken if each] == ["g0", "m0", "g1", "m1"]


def test_who_holds_the_most_makes_room() -> None:
    queue: FairQueue[str] = FairQueue(QueueLimits(count=3))
    for at in range(3):
        queue.add(QueuedRequest("greedy", 1, at, f"g{at}"))
    own = QueuedRequest("greedy", 1, 3, "g3")
    assert queue.add(own) is own
    out = queue.add(QueuedRequest("modest", 1, 4, "m0"))
    assert out is not None
    assert out.request == "g2"
    even = QueuedRequest("modest", 1, 5, "m1")
    assert queue.add(even) is even, "two and two would be no fairer"
