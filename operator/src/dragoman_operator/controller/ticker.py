"""Periodic evaluation of objects: one scrape of their pods, for autoscaling and tuning."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from dragoman_kube.objects import Key
from dragoman_kube.work_queue import BACKOFF
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.observed.snapshot import EnginePod, Manifest, engine_pods
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.values import Scrape
from dragoman_operator.tuning.loop import Tuner

log = logging.getLogger(__name__)


class Due(NamedTuple):
    """One object at one tick: its pods, and what each part knows of it."""

    pods: list[EnginePod]
    parts: dict[str, Any]


class Ticker:
    """Evaluates every object at an interval; one that fails is retried with backoff and does not affect others.

    Args:
        parts: The parts of the operator by name, in the order of evaluation.
        pods: The pods of an object's ReplicaSets, given by their uids; None if pods may not be read. Then the object is
            not evaluated: the number of its pods is not known.
        on_failure: Called with the name of the part for each unexpected failure of an object.
    """

    def __init__(
        self,
        parts: Mapping[str, Autoscaler | Tuner],
        pods: Callable[[Key, Collection[str]], Sequence[Manifest] | None],
        metrics: PodMetrics,
        interval_s: float,
        on_failure: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._pods = pods
        self._metrics = metrics
        self._interval_s = interval_s
        self._on_failure = on_failure
        self._clock = clock
        self._failures: dict[tuple[str, Key], tuple[int, float]] = {}
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
                log.exception("unexpected failure of the evaluation of all objects")
            self.last_tick_s = loop.time() - began
            await asyncio.sleep(max(0.0, self._interval_s - self.last_tick_s))

    async def tick(self) -> None:
        """Evaluate every object once, concurrently."""
        found = {
            (name, key): each for name, part in self._parts.items() for key, each in part.begin().items()
        }
        self._failures = {known: last for known, last in self._failures.items() if known in found}
        due: dict[Key, Due] = {}
        for (name, key), each in found.items():
            if key not in due and (pods := self._pods(key, each.replica_sets)) is not None:
                due[key] = Due(engine_pods(pods), {})
            if key in due:
                due[key].parts[name] = each
        self._metrics.keep({pod.uid for one in due.values() for pod in one.pods})
        # In random order: if time does not suffice for all, it is not always the same ones that are left out.
        order = random.sample(list(due.items()), len(due))
        await asyncio.gather(*(self._evaluate(key, one) for key, one in order))

    @contextmanager
    def guarded(self, name: str, key: Key) -> Iterator[None]:
        """Log and count an unexpected failure of a part for one object instead of raising it."""
        try:
            yield
        except Exception:
            count = self._failures.get((name, key), (0, 0.0))[0] + 1
            self._failures[name, key] = count, self._clock() + BACKOFF.delay_s(count)
            log.exception("unexpected failure of the %s", name, extra={"key": str(key)})
            self._on_failure(name)

    async def _evaluate(self, key: Key, due: Due) -> None:
        now = self._clock()
        parts = [each for each in due.parts.items() if now >= self._failures.get((each[0], key), (0, 0.0))[1]]
        names = max((found.names for _, found in parts), key=len, default=())
        scraped = None if names else Scrape()
        for name, found in parts:
            with self.guarded(name, key):
                scraped = scraped or await self._metrics.read(due.pods, names)
                await self._parts[name].evaluate(key, found, due.pods, scraped)
                self._failures.pop((name, key), None)
