"""How long generations take by how many are in the engine: sums from which `dragoman simulate` gets a pod's speed."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from dragoman_contract.speeds import (
    BOUNDS,
    ELAPSED,
    FINISHED,
    IN_FLIGHT_LABEL,
    SPEED_METRIC,
    SUM_LABEL,
    SUMS,
)

ELAPSED_AT, FINISHED_AT = SUMS.index(ELAPSED), SUMS.index(FINISHED)

STEADY_RATIO = 1.5
"""A generation is as fast as the number beside it at each step allows: their mean says little if it changed by more."""

ROUNDING = 1e-6
"""A mean of exactly 8 must not be counted above 8."""


class Started(NamedTuple):
    """The start of a generation: the time, the number in the engine, and the integral of that until then."""

    at_s: float
    in_engine: int
    area: float


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
        self._in_engine = 0
        self._area = 0.0
        self._at_s = clock()
        self._sums = [[0.0] * len(SUMS) for _ in range(len(BOUNDS) + 1)]
        registry.register(self)

    def start(self) -> Started:
        """A generation starts."""
        self._advance()
        self._in_engine += 1
        return Started(self._at_s, self._in_engine, self._area)

    def end(self, started: Started, tokens: int) -> None:
        """It ended with so many output tokens; without any it failed or was cancelled, and is not summed.

        Its duration is not summed where the number in the engine changed much meanwhile.
        """
        self._advance()
        low, high = sorted((started.in_engine, self._in_engine))
        seconds = self._at_s - started.at_s
        if tokens > 0:
            now = self._sums[bisect_left(BOUNDS, self._in_engine)]
            now[FINISHED_AT] += 1
            now[FINISHED_AT + 1] += tokens
        self._in_engine -= 1
        if tokens <= 0 or seconds <= 0 or high > STEADY_RATIO * low + 1:
            return
        in_flight = (self._area - started.area) / seconds
        sums = self._sums[bisect_left(BOUNDS, in_flight - ROUNDING)]
        for index, value in enumerate((1, in_flight, seconds, tokens, tokens * tokens, tokens * seconds)):
            sums[index] += value

    def collect(self) -> Iterator[CounterMetricFamily]:
        """The sums of those bounds that have any."""
        family = CounterMetricFamily(
            SPEED_METRIC,
            "Sums over generations, by the number in the engine; for dragoman simulate",
            labels=["model_name", IN_FLIGHT_LABEL, SUM_LABEL],
        )
        for bound, sums in zip((*map(str, BOUNDS), "+Inf"), self._sums, strict=True):
            if any(sums):
                for name, value in zip(SUMS, sums, strict=True):
                    family.add_metric([self._model_name, bound, name], value)
        yield family

    def _advance(self) -> None:
        now_s = self._clock()
        if self._in_engine:
            passed_s = now_s - self._at_s
            self._area += self._in_engine * passed_s
            self._sums[bisect_left(BOUNDS, self._in_engine)][ELAPSED_AT] += passed_s
        self._at_s = now_s
