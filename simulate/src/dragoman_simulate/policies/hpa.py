"""The HorizontalPodAutoscaler: its controller, which KEDA and llm-d act through too, and one metric of its own.

Sources:
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details
    https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#default-behavior
    https://github.com/kubernetes/kubernetes/blob/master/pkg/controller/podautoscaler/replica_calculator.go
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from dragoman_simulate.view import ScalingLimits, View

SYNC_S = 15
TOLERANCE = 0.1


@dataclass(frozen=True)
class Behavior:
    """`spec.behavior` of an HPA, as its default has it: windows in seconds, growth per 15 seconds.

    Attributes:
        down_window_s: Shrink to the highest recommendation of this long.
        up_percent: Grow by at most this share of the replicas …
        up_pods: … or by this many, whichever is more.
        down_pods: Shrink by at most this many; None for no limit.
    """

    down_window_s: float = 300
    up_percent: float = 1.0
    up_pods: int = 4
    down_pods: int | None = None


class HpaController:
    """What the HPA does with a recommendation before it writes it down."""

    def __init__(self, limits: ScalingLimits, behavior: Behavior) -> None:
        self._minimum = max(1, limits.minimum)
        self._maximum = limits.maximum
        self._behavior = behavior
        self._recommended: deque[tuple[float, int]] = deque()

    def settle(self, current: int, recommended: int, now_s: float) -> int:
        """Replicas to write, from those there are and the metric's recommendation."""
        behavior = self._behavior
        if not self._recommended and behavior.down_window_s:
            self._recommended.append(
                (now_s, current)
            )  # a fresh HPA takes what it finds for its first recommendation
        self._recommended.append((now_s, recommended))
        while self._recommended[0][0] <= now_s - max(behavior.down_window_s, 1):
            self._recommended.popleft()
        highest = max(count for _, count in self._recommended)
        wanted = recommended if recommended >= current else min(current, highest)
        ceiling = max(math.ceil(current * (1 + behavior.up_percent)), current + behavior.up_pods)
        floor = 0 if behavior.down_pods is None else current - behavior.down_pods
        return min(max(min(max(wanted, floor), ceiling), self._minimum), self._maximum)


def external_metric_replicas(total: float, target: float, current: int) -> int:
    """Replicas for an external metric with `AverageValue`: its total over the target, unless nearly there."""
    if current and abs(1 - total / (target * current)) <= TOLERANCE:
        return current
    return math.ceil(total / target - 1e-9)


def pods_metric_replicas(total: float, ready: int, pending: int, target: float, current: int) -> int:
    """Replicas for a metric averaged over pods, where pods that start have none yet.

    They count as idle when the others are over the target and as at target when the others are under it, and a
    recommendation that this turns around is dropped.
    """
    if not ready:
        return current
    ratio = total / ready / target
    if not pending or abs(1 - ratio) <= TOLERANCE:
        return current if abs(1 - ratio) <= TOLERANCE else math.ceil(ratio * ready - 1e-9)
    assumed = total if ratio > 1 else total + pending * target
    corrected = assumed / (ready + pending) / target
    if abs(1 - corrected) <= TOLERANCE or (corrected > 1) != (ratio > 1):
        return current
    replicas = math.ceil(corrected * (ready + pending) - 1e-9)
    return current if (replicas < current) == (corrected > 1) else replicas


class ConcurrencyHpa:
    """An HPA on one metric: requests per pod, running and waiting, with the target that ours is given."""

    tick_s = SYNC_S

    def __init__(self, limits: ScalingLimits) -> None:
        self._target = limits.target_concurrency
        self._controller = HpaController(limits, Behavior())

    def decide(self, view: View) -> int:
        """See `FleetPolicy.decide`. Without metrics the HPA leaves the replicas as they are."""
        if view.metrics is None:
            return view.desired
        total = view.metrics.running + view.metrics.waiting
        wanted = pods_metric_replicas(total, view.ready, view.pending, self._target, view.desired)
        return self._controller.settle(view.desired, wanted, view.now_s)
