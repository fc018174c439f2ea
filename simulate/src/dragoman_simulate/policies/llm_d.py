"""llm-d's Workload Variant Autoscaler with its saturation analyzer (version 2, the default since v0.9.0).

Every 15 s: demand is the tokens in the KV caches and the inputs of what waits; a replica's capacity is the
lesser of 80% of its KV cache and the tokens that it was seen to hold when its queue was full (before that, the
tokens of a full batch). It grows when demand / 0.85 exceeds the ready and pending capacity and shrinks when
demand / 0.70 leaves a whole replica of the ready capacity spare. An HPA carries the number out, with the
behaviour of the chart: no windows, ten pods per 15 s either way.

Sources:
    https://github.com/llm-d/llm-d-workload-variant-autoscaler/blob/v0.9.0/docs/developer-guide/saturation-scaling-config.md
    …/internal/engines/analyzers/saturation_v2/analyzer.go (computeReplicaCapacity, computeK2,
    estimateCapacityFromParams), …/internal/engines/pipeline/cost_aware_optimizer.go,
    …/charts/workload-variant-autoscaler/templates/hpa.yaml
"""

from __future__ import annotations

import math
from collections import deque

from dragoman_simulate.policies.hpa import Behavior, HpaController, external_metric_replicas
from dragoman_simulate.view import Metrics, ScalingLimits, View

INTERVAL_S = 15
SCALE_UP_THRESHOLD = 0.85
SCALE_DOWN_BOUNDARY = 0.70
KV_CACHE_THRESHOLD = 0.80
QUEUE_LENGTH_THRESHOLD = 5
OBSERVATIONS = 10
RETENTION_S = 600


class LlmD:
    """The saturation rule on one variant, with zero allowed where the minimum is 0 (retention ten minutes).

    Args:
        threshold: Of scaling up; that of scaling down keeps its ratio to it.
    """

    tick_s = INTERVAL_S

    def __init__(self, limits: ScalingLimits, threshold: float = SCALE_UP_THRESHOLD) -> None:
        self._limits = limits
        self._up, self._down = threshold, threshold * SCALE_DOWN_BOUNDARY / SCALE_UP_THRESHOLD
        self._controller = HpaController(
            limits, Behavior(down_window_s=0, up_percent=0.0, up_pods=10, down_pods=10)
        )
        self._observed: deque[float] = deque(maxlen=OBSERVATIONS)
        self._used_s = 0.0

    def decide(self, view: View) -> int:
        """See `FleetPolicy.decide`. Without metrics the last number stands."""
        metrics = view.metrics
        if view.queued > 0 or (metrics is not None and metrics.running > 0.5):
            self._used_s = view.now_s
        if (
            view.desired == 0
        ):  # the router's queue is polled each 100 ms; here at each tick, and so up to 15 s late
            return max(1, self._limits.minimum) if view.queued > 0 else 0
        if metrics is None or not view.ready:
            return view.desired
        if self._limits.minimum == 0 and view.now_s - self._used_s >= RETENTION_S:
            return 0
        wanted = self._wanted(view, metrics)
        recommended = external_metric_replicas(wanted, 1, view.desired)
        return self._controller.settle(view.desired, recommended, view.now_s)

    def _wanted(self, view: View, metrics: Metrics) -> int:
        used_each = metrics.source_tokens + metrics.target_tokens / 2
        for group in metrics.alike:
            if group.waiting >= QUEUE_LENGTH_THRESHOLD:
                self._observed.append(group.running * used_each)
        capacity = self._capacity(used_each)
        demand = metrics.running * used_each + metrics.waiting * metrics.source_tokens
        demand += view.queued * (metrics.source_tokens + metrics.target_tokens)
        short = demand / self._up - (view.ready + view.pending) * capacity
        spare = view.ready * capacity - demand / self._down
        if short > 0:
            return view.desired + math.ceil(short / capacity)
        if spare > 0:
            return max(1, view.desired - math.floor(spare / capacity))
        return view.desired

    def _capacity(self, used_each: float) -> float:
        memory_bound = self._limits.kv_cache_tokens * KV_CACHE_THRESHOLD
        if self._observed:
            return min(memory_bound, sum(self._observed) / len(self._observed))
        return min(memory_bound, self._limits.max_num_seqs * used_each)
