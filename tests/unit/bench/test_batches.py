"""How a worker of the static batches collects them."""

import queue
import threading
import time

from dragoman_bench.arms.translation_worker import collect


def test_what_is_there_is_taken_up_to_the_most() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    for number in range(20):
        waiting.put(str(number))
    assert collect(waiting, 16, 0.05) == [str(number) for number in range(16)]
    assert collect(waiting, 16, 0.05) == ["16", "17", "18", "19"]


def test_without_batches_one_is_taken_and_none_waited_for() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    waiting.put("a")
    waiting.put("b")
    assert collect(waiting, 1, 0.0) == ["a"]


def test_one_that_comes_while_it_waits_joins() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    waiting.put("a")
    late = threading.Timer(0.05, waiting.put, ("b",))
    late.start()
    began_s = time.monotonic()
    assert collect(waiting, 2, 5.0) == ["a", "b"]
    assert time.monotonic() - began_s < 5.0
    late.join()
