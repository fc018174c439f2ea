"""Our own autoscaler: the very function that the operator calls, shown what the operator would see."""

from __future__ import annotations

from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.values import History, Policy, ReplicaSample, Samples
from dragoman_simulate.view import Metrics, ScalingLimits, View

EPOCH = 1_000_000_000.0
"""The replay's second 0 as a Unix time, so that nothing can rely on clocks that begin at nought."""


class Dragoman:
    """Calls `recommend` at every tick and keeps its history, as JSON, the way an object's status does."""

    def __init__(self, limits: ScalingLimits) -> None:
        self._policy = Policy(
            min_replicas=limits.minimum,
            max_replicas=limits.maximum,
            max_num_seqs=limits.max_num_seqs,
            target_concurrency=limits.target_concurrency,
            target_queue_time_s=limits.target_wait_s,
            idle_s=limits.idle_s,
            objective=limits.objective,
            tick_s=limits.tick_s,
        )
        self._start_up_s = limits.start_up_s
        self._history = History()
        self._finished: tuple[float, float] | None = None
        self._pending_since: float | None = None

    @property
    def tick_s(self) -> int:
        """Seconds between two calls."""
        return round(self._policy.tick_s)

    def decide(self, view: View) -> int:
        """See `FleetPolicy.decide`."""
        if view.pending == 0:
            self._pending_since = None
        elif self._pending_since is None:
            self._pending_since = view.now_s
        samples = Samples(
            desired=view.desired,
            replicas=self._samples(view),
            pending=view.pending,
            pending_s=0.0 if self._pending_since is None else view.now_s - self._pending_since,
            cancellable=view.pending,
            queued=view.queued,
            time_to_ready_s=self._start_up_s,
        )
        decision = recommend(self._policy, samples, self._history, EPOCH + view.now_s)
        self._history = decision.history
        return decision.replicas

    def _samples(self, view: View) -> tuple[ReplicaSample, ...]:
        metrics = view.metrics
        if metrics is None:
            self._finished = None
            return (ReplicaSample(at=None),) * view.ready
        total = self._finished_per_s(view.now_s, metrics)
        rate = None if total is None else total / max(1, view.ready)
        at = EPOCH + view.now_s
        samples: list[ReplicaSample] = []
        for group in metrics.alike:
            sample = ReplicaSample(at, group.running, group.waiting, group.kv_usage, rate)
            samples.extend([sample] * group.replicas)
        return tuple(samples)

    def _finished_per_s(self, now_s: float, metrics: Metrics) -> float | None:
        before, self._finished = self._finished, (now_s, metrics.finished_total)
        if before is None:
            return None
        return max(0.0, metrics.finished_total - before[1]) / (now_s - before[0])
