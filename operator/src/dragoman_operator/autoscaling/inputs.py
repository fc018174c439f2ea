"""The input of the decision: the policy from the spec, and the samples from what was scraped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dragoman_operator.api.fields import seconds
from dragoman_operator.api.scaling import ratio
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.decision.values import Policy, ReplicaSample, Samples
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.scraping.values import Reading, TotalLoad


def policy_of(spec: TranslationDeploymentSpec, tick_s: float = 1.0, interval_s: float = 0.0) -> Policy:
    """The autoscaler's bounds and targets, of a spec with `autoscaling`.

    `interval_s` is the time between two samples of a pod, if longer than the tick: a sample is old only once several
    are due.
    """
    scaling = spec.autoscaling
    if scaling is None:
        raise ValueError("a spec without autoscaling has no policy")
    window = scaling.scale_down_stabilization_window
    return Policy(
        min_replicas=scaling.lowest_replicas,
        max_replicas=scaling.max_replicas,
        max_num_seqs=spec.engine.max_num_seqs,
        target_concurrency=scaling.target_concurrency,
        target_kv_cache_usage=scaling.target_kv_cache_usage,
        target_queue_time_s=float(seconds(scaling.target_queue_time)),
        idle_s=float(scaling.idle_seconds),
        scale_down_window_s=None if window is None else float(seconds(window)),
        objective=ratio(scaling.objective),
        tick_s=max(tick_s, interval_s),
    )


def samples_of(
    desired: int,
    requested_at_s: float,
    pods: Sequence[EnginePod],
    readings: Mapping[str, Reading],
    load: TotalLoad,
    starts: Starts,
    now: float,
) -> Samples:
    """The input of `recommend`.

    Replicas without a pod are as old as the last change of `desired`, at `requested_at_s`.
    """
    ready = [pod for pod in pods if pod.ready]
    waiting = [pod.changed_s for pod in pods if not pod.ready]
    if desired > len(pods):
        waiting.append(requested_at_s)
    rollout = len({pod.template for pod in pods}) > 1
    return Samples(
        desired=desired,
        replicas=tuple(replica_sample(readings.get(pod.uid)) for pod in ready),
        pending=max(0, max(len(pods), desired) - len(ready)),
        pending_s=max(0.0, now - min(waiting)) if waiting else 0.0,
        cancellable=0 if rollout else sum(pod.uid in starts.starting for pod in pods),
        queued=float(load.queued),
        time_to_ready_s=starts.time_to_ready_s,
        routers_not_reporting=load.not_reporting,
    )


def replica_sample(reading: Reading | None) -> ReplicaSample:
    """A replica's sample; without rates for its first metrics and after a restart of the engine."""
    if reading is None:
        return ReplicaSample(None)
    now, before = reading
    finished = refused = None
    if before is not None and now.at > before.at:
        finished = _rate(now.finished, before.finished, now.at - before.at)
        refused = _rate(now.refused, before.refused, now.at - before.at)
    return ReplicaSample(now.at, now.running, now.waiting, now.kv_usage, finished, refused)


def _rate(now: float | None, before: float | None, span_s: float) -> float | None:
    """Increase of a counter per second; None if it is missing or was reset."""
    return None if now is None or before is None or now < before else (now - before) / span_s
