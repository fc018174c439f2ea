"""Knative's Pod Autoscaler (KPA) on concurrency, with the defaults of its ConfigMap.

Sources:
    https://knative.dev/docs/serving/autoscaling/kpa-specific/
    https://github.com/knative/serving/blob/main/config/core/configmaps/autoscaler.yaml
    https://github.com/knative/serving/blob/main/pkg/autoscaler/scaling/autoscaler.go
"""

from __future__ import annotations

import math
from collections import deque

from dragoman_simulate.view import ScalingLimits, View

TICK_S = 2
STABLE_WINDOW_S = 60
PANIC_WINDOW_S = 6
PANIC_THRESHOLD = 2.0
TARGET_UTILIZATION = 0.7
MAX_SCALE_UP_RATE = 1000.0
MAX_SCALE_DOWN_RATE = 2.0
SCALE_TO_ZERO_GRACE_S = 30


class Kpa:
    """Container concurrency is `max_num_seqs`, `utilization` of it the target; what waits counts as concurrent."""

    tick_s = TICK_S

    def __init__(self, limits: ScalingLimits, utilization: float = TARGET_UTILIZATION) -> None:
        self._limits = limits
        self._target = utilization * limits.max_num_seqs
        self._concurrency: deque[tuple[float, float]] = deque()
        self._panic_since_s: float | None = None
        self._panic_replicas = 0
        self._idle_since_s: float | None = None

    def decide(self, view: View) -> int:
        """See `FleetPolicy.decide`. Without metrics the scale is invalid and nothing is written."""
        if view.metrics is None:
            return view.desired
        now_s = view.now_s
        if (
            not self._concurrency and view.ready > 1
        ):  # a fresh one with replicas begins in panic, and so keeps them
            self._panic_since_s, self._panic_replicas = now_s, view.ready
        concurrency = view.metrics.running + view.metrics.waiting + view.queued
        self._concurrency.append((now_s, concurrency))
        while self._concurrency[0][0] <= now_s - STABLE_WINDOW_S:
            self._concurrency.popleft()
        ready = max(1, view.ready)
        highest, lowest = math.ceil(MAX_SCALE_UP_RATE * ready), math.floor(ready / MAX_SCALE_DOWN_RATE)
        stable_raw, panic_raw = (
            math.ceil(self._mean(since) / self._target) for since in (-math.inf, now_s - PANIC_WINDOW_S)
        )
        stable, panic = (min(max(raw, lowest), highest) for raw in (stable_raw, panic_raw))
        if panic_raw / ready >= PANIC_THRESHOLD:
            self._panic_since_s = now_s
        elif self._panic_since_s is not None and self._panic_since_s + STABLE_WINDOW_S < now_s:
            self._panic_since_s, self._panic_replicas = None, 0
        wanted = stable
        if self._panic_since_s is not None:
            self._panic_replicas = max(self._panic_replicas, stable, panic)
            wanted = self._panic_replicas
        return self._bounded(wanted, stable_raw, view)

    def _mean(self, since_s: float) -> float:
        values = [value for at_s, value in self._concurrency if at_s > since_s]
        return sum(values) / len(values)

    def _bounded(self, wanted: int, stable_raw: int, view: View) -> int:
        """Between the limits; the last replica stays for the grace period after the window has emptied."""
        if stable_raw > 0 or view.queued > 0:
            self._idle_since_s = None
        elif self._idle_since_s is None:
            self._idle_since_s = view.now_s
        idle = self._idle_since_s is not None and view.now_s - self._idle_since_s >= SCALE_TO_ZERO_GRACE_S
        floor = 0 if idle or (view.desired == 0 and wanted == 0) else 1
        return min(max(wanted, self._limits.minimum, floor), self._limits.maximum)
