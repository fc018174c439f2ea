"""Periodic evaluation of objects, for autoscaling and tuning."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from dragoman_kube.objects import Key
from dragoman_kube.work_queue import BACKOFF

log = logging.getLogger(__name__)

Evaluation = Callable[[], Awaitable[None]]


class Ticker:
    """Evaluates every object at an interval; one that fails is retried with backoff and does not affect others.

    Args:
        evaluations: The evaluations that are due, by object.
        on_failure: Called for each unexpected failure of an object.
    """

    def __init__(
        self,
        name: str,
        evaluations: Callable[[], Mapping[Key, Evaluation]],
        interval_s: float,
        on_failure: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._evaluations = evaluations
        self._interval_s = interval_s
        self._on_failure = on_failure
        self._clock = clock
        self._failures: dict[Key, tuple[int, float]] = {}
        """Failures in a row, and the time of the next attempt."""
        self.last_tick_s = 0.0

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self.tick()
            except Exception:
                log.exception("unexpected failure of the %s", self._name)
            self.last_tick_s = loop.time() - began
            await asyncio.sleep(max(0.0, self._interval_s - self.last_tick_s))

    async def tick(self) -> None:
        """Evaluate every object once, concurrently."""
        evaluations = self._evaluations()
        for key in self._failures.keys() - evaluations.keys():
            del self._failures[key]
        # In random order: if time does not suffice for all, it is not always the same ones that are left out.
        due = random.sample(list(evaluations.items()), len(evaluations))
        await asyncio.gather(*(self._evaluate(key, evaluation) for key, evaluation in due))

    @contextmanager
    def guarded(self, key: Key) -> Iterator[None]:
        """Log and count an unexpected failure of one object instead of raising it."""
        try:
            yield
        except Exception:
            count = self._failures.get(key, (0, 0.0))[0] + 1
            self._failures[key] = count, self._clock() + BACKOFF.delay_s(count)
            log.exception("unexpected failure of the %s", self._name, extra={"key": str(key)})
            self._on_failure(key)

    async def _evaluate(self, key: Key, evaluation: Evaluation) -> None:
        if self._clock() < self._failures.get(key, (0, 0.0))[1]:
            return
        with self.guarded(key):
            await evaluation()
            self._failures.pop(key, None)
