"""What the autoscaler says of one deployment, as the status and the metrics show it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from dragoman_operator.api.fields import seconds
from dragoman_operator.api.packing import packed, unpacked
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.status import Scaling, ScalingChange
from dragoman_operator.api.status import Signals as SignalsStatus
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.decision import Decision, History, Policy, Signals, TotalLoad
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.observed.engine_pods import EnginePod

CLOCKS_DIFFER_S = 60.0
"""Maximum by which the previous operator's clock may be ahead."""

KEPT = 5
"""Changes that the status has."""

PUBLISH_EVERY_S = 60.0
PUBLISH_DIFFERENCE_AFTER_S = 15.0
"""Figures go to the status once a minute; a rule that takes over, or another trouble, a little earlier."""


@dataclass(frozen=True, slots=True)
class Sizing:
    """A number of replicas, the rule that it comes from, and its reason."""

    replicas: int
    rule: str
    reason: str


@dataclass(frozen=True, slots=True)
class MetricsSeen:
    """Whether there are figures to decide by; the condition MetricsAvailable."""

    available: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Scaled:
    """One decision.

    Attributes:
        replicas: As many there should be.
        rule: Which rule decided.
        reason: Why, in a sentence.
        at: When, Unix seconds.
        source: Where the metrics come from.
        metrics: Whether they come; None before the first attempt.
        signals: The figures behind it.
        load: What the routers said.
        ready: Replicas that were ready.
        time_to_ready_s: How long one takes to become ready; None before the first.
        history: What the next decision is given.
        starts: How long replicas took to start, for the next operator.
    """

    replicas: int
    rule: str
    reason: str
    at: float
    source: str = ""
    metrics: MetricsSeen | None = None
    signals: Signals = field(default_factory=Signals)
    load: TotalLoad = field(default_factory=TotalLoad)
    ready: int = 0
    time_to_ready_s: float | None = None
    history: History = field(default_factory=History)
    starts: Starts = field(default_factory=Starts)


def policy_of(spec: TranslationDeploymentSpec, tick_s: float, interval_s: float = 0.0) -> Policy:
    """The autoscaler's bounds and targets; `spec.autoscaling` is there.

    Args:
        spec: The object's spec.
        tick_s: Seconds between two decisions.
        interval_s: Seconds between two samples of a pod, where those come less often: a sample is old only once
            several are due.
    """
    scaling = spec.autoscaling
    if scaling is None:
        raise ValueError("a spec without autoscaling has no policy")
    window = scaling.scale_down_window
    return Policy(
        min_replicas=scaling.min_replicas,
        max_replicas=scaling.max_replicas,
        max_num_seqs=spec.engine.max_num_seqs,
        target_concurrency=scaling.target_concurrency,
        target_kv_cache_usage=scaling.target_kv_cache_usage,
        target_wait_s=float(seconds(scaling.target_wait)),
        idle_s=float(scaling.idle_seconds),
        scale_down_window_s=None if window is None else float(seconds(window)),
        tick_s=max(tick_s, interval_s),
    )


def metrics_seen(
    pods: Sequence[EnginePod],
    decision: Decision,
    problems: Mapping[str, str],
    failure: str | None,
    for_long: bool,
) -> MetricsSeen:
    """The condition MetricsAvailable.

    Args:
        pods: The deployment's.
        decision: What was decided by the metrics.
        problems: Why a pod was not heard of, by its name.
        failure: Why the source as a whole did not answer; None where it did.
        for_long: Whether it has not for so long that its samples are old.
    """
    ready = sum(pod.ready for pod in pods)
    missing = decision.signals.missing
    several = "; ".join(f"{name}: {problem}" for name, problem in sorted(problems.items())[:3])
    if failure is not None and (for_long or not decision.metrics_available):
        return MetricsSeen(False, "MetricsSourceFails", f"{failure}; replicas are held")
    if not decision.metrics_available:
        message = f"{missing} of {ready} ready replicas give no metrics and replicas are held: {several}"
        return MetricsSeen(False, "ReplicasSilent", message)
    if not ready:
        return MetricsSeen(True, "MetricsRead", "no replica is ready, so there is nothing to read")
    message = f"{ready - missing} of {ready} ready replicas give metrics"
    return MetricsSeen(True, "MetricsRead", f"{message}; {several}" if missing and several else message)


def worth_publishing(new: Scaled, shown: Scaled) -> bool:
    """Whether the status should say what was decided now.

    Args:
        new: The decision.
        shown: The one that the status shows.
    """
    if (new.replicas, new.ready, _metrics(new)) != (shown.replicas, shown.ready, _metrics(shown)):
        return True
    differs = (new.rule, new.metrics) != (shown.rule, shown.metrics)
    return new.at - shown.at >= (PUBLISH_DIFFERENCE_AFTER_S if differs else PUBLISH_EVERY_S)


def _metrics(scaled: Scaled) -> str | None:
    return None if scaled.metrics is None else scaled.metrics.reason


def status_fields(scaled: Scaled) -> Scaling:
    """Decision, figures and memory for `status.scaling`; numbers rounded to what they mean."""
    signals, load = scaled.signals, scaled.load
    return Scaling(
        rule=scaled.rule,
        reason=scaled.reason[:1024],
        evaluated_at=stamp(scaled.at),
        source=scaled.source[:512] or None,
        time_to_ready_seconds=_rounded(scaled.time_to_ready_s),
        signals=SignalsStatus(
            running=_rounded(signals.running),
            waiting=_rounded(signals.waiting),
            held=load.held,
            in_flight_at_routers=load.in_flight,
            silent_replicas=signals.missing,
            silent_routers=load.silent,
            arrivals_per_second=_rounded(signals.arrivals_per_s),
            seconds_per_request=_rounded(signals.service_s),
            kv_cache_usage=_rounded(signals.kv_usage),
            replicas_by_load=_rounded(signals.by_load),
            replicas_by_memory=_rounded(signals.by_memory),
            window_seconds=_rounded(signals.window_s),
        ),
        memory=pack(scaled.history, scaled.starts),
    )


def changes(old: Mapping[str, Any], sized: Sizing, now: datetime) -> tuple[ScalingChange, ...]:
    """The newest first; one more where the number differs from the one that the status has.

    Args:
        old: The status as stored; may be empty, and then nothing has changed yet.
        sized: Replicas that there should be now.
        now: The time.
    """
    stored = (old.get("scaling") or {}).get("changes") or ()
    known = tuple(change for entry in stored if (change := _read(entry)) is not None)
    before = old.get("desiredReplicas")
    if before is None or before == sized.replicas:
        return known
    change = ScalingChange(
        time=stamp(now.timestamp()),
        from_=before,
        to=sized.replicas,
        rule=sized.rule,
        reason=sized.reason[:1024],
    )
    return (change, *known)[:KEPT]


def _read(entry: object) -> ScalingChange | None:
    """A stored change; None if it is malformed."""
    try:
        return ScalingChange.model_validate(entry)
    except ValidationError:
        return None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def longest_start_s(spec: TranslationDeploymentSpec) -> float:
    """Maximum time from a pod's creation to its readiness; the Deployment's progress deadline."""
    return float(seconds(spec.rollout.start_timeout) + PROGRESS_MARGIN_S)


def pack(history: History, starts: Starts) -> str:
    """What the autoscaler remembers, encoded for the status."""
    return packed(json.dumps({**json.loads(history.to_json()), "starts": starts.to_fields()}))


def unpack(word: Any, now: float) -> tuple[History, Any]:
    """Read it back.

    Args:
        word: Of `pack`.
        now: Unix seconds; a history of the future is not one.

    Returns:
        The history, and the fields of `Starts`. What cannot be read is an empty history, which only makes
        scale-down wait longer, and None.
    """
    try:
        text = unpacked(word)
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return History(), None
    history = History.from_json(text)
    if history.begins_after(now + CLOCKS_DIFFER_S):
        history = History()
    return history, fields.get("starts") if isinstance(fields, Mapping) else None


def stamp(at: float) -> str:
    """Unix seconds as Kubernetes writes a time."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
