"""How long generations run by how many run beside them: sums from which `dragoman simulate` gets a pod's speed."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from dragoman_contract.reports import BOUNDS, SUMS
from dragoman_service.metric_definitions import GENERATION_SUMS

ROUNDING = 1e-6
"""A mean of exactly 8 must not be counted above 8."""


@dataclass(eq=False, slots=True)
class Generation:
    """A generation in the engine or its queue.

    Attributes:
        at_s: When it got a slot; None while it waits.
        area: The integral of the number that run until then.
    """

    at_s: float | None = None
    area: float = 0.0


class Speeds(Collector):
    """Sums over generations, exported as one metric. Not for several threads: all calls are on the event loop.

    Args:
        model_name: Label value.
        clock: Monotonic seconds.
    """

    def __init__(
        self, registry: CollectorRegistry, model_name: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._model_name = model_name
        self._clock = clock
        self._running = 0
        self._waiting: OrderedDict[Generation, None] = OrderedDict()
        self._area = 0.0
        self._at_s = clock()
        self._sums = [[0.0] * len(SUMS) for _ in range(len(BOUNDS) + 1)]
        registry.register(self)

    def start(self, sequences: int) -> Generation:
        """A generation starts in an engine that runs so many at once, and the others in the order of their starts."""
        self._advance()
        generation = Generation()
        if self._running < sequences:
            self._run(generation)
        else:
            self._waiting[generation] = None
        return generation

    def end(self, generation: Generation, tokens: int) -> None:
        """It ended with so many output tokens; without any it failed or was cancelled, and is not summed."""
        self._advance()
        if generation.at_s is None:
            # Cancelled, or started out of order.
            del self._waiting[generation]
            return
        seconds = self._at_s - generation.at_s
        self._running -= 1
        if self._waiting:
            self._run(self._waiting.popitem(last=False)[0])
        if tokens <= 0 or seconds <= 0:
            return
        running = (self._area - generation.area) / seconds
        sums = self._sums[bisect_left(BOUNDS, running - ROUNDING)]
        for index, value in enumerate((1, running, seconds, tokens, tokens * tokens, tokens * seconds)):
            sums[index] += value

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The sums of those bounds that have any."""
        labels = ("model_name", *GENERATION_SUMS.labels)
        family = CounterMetricFamily(GENERATION_SUMS.name, GENERATION_SUMS.help, labels=labels)
        for bound, sums in zip((*map(str, BOUNDS), "+Inf"), self._sums, strict=True):
            if any(sums):
                for name, value in zip(SUMS, sums, strict=True):
                    family.add_metric([self._model_name, bound, name], value)
        yield family

    def _run(self, generation: Generation) -> None:
        self._running += 1
        generation.at_s, generation.area = self._at_s, self._area

    def _advance(self) -> None:
        now_s = self._clock()
        self._area += self._running * (now_s - self._at_s)
        self._at_s = now_s
