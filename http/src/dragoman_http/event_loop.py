"""Keeps the event loop responsive: one worker thread, garbage collections between requests; and measures its lag."""

from __future__ import annotations

import asyncio
import gc
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

COLLECT_EVERY_S = 1.0

MAX_INTERVAL_S = 60.0
"""A pod that always has requests collects while they wait, this often."""

YOUNG = 5_000
"""Objects after which the youngest are collected, in less than a millisecond. With Python's 700 that happens every few
requests, and those in flight are searched each time."""

NEVER = 1_000_000_000
"""Collections of the young objects before one of all objects."""


def use_one_worker_thread() -> None:
    """Run what `asyncio.to_thread` gets, on the event loop that runs, one after another.

    Two busy threads hand the interpreter's lock to each other whenever one calls `regex`, which releases it; the event
    loop then waits for tens or hundreds of milliseconds.
    """
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker")
    asyncio.get_running_loop().set_default_executor(worker)


def keep_all_objects() -> None:
    """Except all objects that exist now from later garbage collections.

    They stay as long as the process; a full collection with modules, deployments or torch would delay requests for
    50 ms to a good part of a second.
    """
    gc.collect()
    gc.freeze()


class InService(Protocol):
    """What tells when requests may come, and how many there are."""

    @property
    def started(self) -> bool:
        """Whether requests are served."""

    @property
    def in_flight(self) -> int:
        """Requests that are not answered."""


async def collect_between_requests(pod: InService) -> None:
    """Collect the oldest generation while the pod is idle, until cancelled.

    Left alone, Python collects it in the middle of a large request: with a document of 50,000 paragraphs in flight
    that takes 0.4 s, several times. The younger generations take a millisecond or two, and stay automatic.

    Args:
        pod: Before it has started, Python's own schedule holds.
    """
    while not pod.started:  # noqa: ASYNC110 - it sets no event
        await asyncio.sleep(COLLECT_EVERY_S)
    usual = gc.get_threshold()
    gc.set_threshold(YOUNG, usual[1], NEVER)
    last_s = time.monotonic()
    before = 0
    try:
        while True:
            await asyncio.sleep(COLLECT_EVERY_S)
            # Collections of the young objects since the last one of all: where they go on, something is being read.
            young = gc.get_count()[2]
            is_idle = young == before and not pod.in_flight
            is_due = time.monotonic() - last_s >= MAX_INTERVAL_S
            if young and (is_idle or is_due):
                gc.collect()
                last_s, young = time.monotonic(), 0
            before = young
    finally:
        gc.set_threshold(*usual)


MEASURE_EVERY_S = 0.5

REMEMBERED = 30
"""Measurements that the worst is taken of: 15 s, which is how often metrics are read as a rule."""


class LoopLag:
    """Measures how late a timer fires."""

    def __init__(self) -> None:
        self._late_s: deque[float] = deque([0.0], maxlen=REMEMBERED)

    def worst_s(self) -> float:
        """The longest delay of the last 15 seconds, in seconds."""
        return max(self._late_s)

    async def watch(self) -> None:
        """Measure until cancelled."""
        while True:
            due_s = time.monotonic() + MEASURE_EVERY_S
            await asyncio.sleep(MEASURE_EVERY_S)
            self._late_s.append(max(0.0, time.monotonic() - due_s))
