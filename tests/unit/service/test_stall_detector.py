from tests.support.clock import Clock

from dragoman_service.engine.protocol import StallDetector


def test_an_idle_engine_owes_nothing() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    clock.now_s = 1000
    assert (stall_detector.stalled_s, stall_detector.generating) == (0, 0)


def test_time_counts_from_the_last_step_while_there_is_work() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation():
        clock.now_s = 5
        assert (stall_detector.stalled_s, stall_detector.generating) == (5, 1)
        stall_detector.step()
        clock.now_s = 8
        assert stall_detector.stalled_s == 3


def test_a_stuck_engine_is_noticed_through_callers_that_give_up() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    for _ in range(5):
        with stall_detector.generation():
            clock.now_s += 30
        clock.now_s += 1000
    assert stall_detector.stalled_s == 150
    stall_detector.step()
    assert stall_detector.stalled_s == 0


def test_a_caller_that_leaves_at_once_makes_no_stuck_engine() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation():
        clock.now_s += 0.005
    clock.now_s += 10_000
    assert stall_detector.stalled_s == 0.005


def test_generations_side_by_side_count_time_once() -> None:
    clock = Clock(0.0)
    stall_detector = StallDetector(clock)
    with stall_detector.generation(), stall_detector.generation():
        clock.now_s += 10
        assert (stall_detector.stalled_s, stall_detector.generating) == (10, 2)
    assert stall_detector.stalled_s == 10
