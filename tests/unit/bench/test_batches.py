"""How a worker of the static batches collects them."""

import queue
import threading
import time

from dragoman_bench.arms.queue_server import collect


def test_queued_keys_are_taken_up_to_the_maximum() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    for number in range(20):
        waiting.put(str(number))
    assert collect(waiting, 16, 0.05) == [str(number) for number in range(16)]
    assert collect(waiting, 16, 0.05) == ["16", "17", "18", "19"]


def test_without_batches_one_key_is_taken_at_once() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    waiting.put("a")
    waiting.put("b")
    assert collect(waiting, 1, 0.0) == ["a"]


def test_a_key_that_comes_during_the_wait_joins() -> None:
    waiting: queue.Queue[str] = queue.Queue()
    waiting.put("a")
    late = threading.Timer(0.05, waiting.put, ("b",))
    late.start()
    began_s = time.monotonic()
    assert collect(waiting, 2, 5.0) == ["a", "b"]
    assert time.monotonic() - began_s < 5.0
    late.join()
