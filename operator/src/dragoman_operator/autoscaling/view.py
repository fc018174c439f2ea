"""State of the autoscaler for one deployment: its decision, and how it is restored from the status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dragoman_operator.api.fields import seconds
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.status import ConditionValue, decode_state, encode_state, rounded
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.autoscaling.decision.values import (
    Decision,
    History,
    Proposal,
    Rule,
    Signals,
    count_of,
)
from dragoman_operator.autoscaling.starts import Starts
from dragoman_operator.observed.snapshot import EnginePod, Manifest
from dragoman_operator.scraping.values import TotalLoad

CLOCKS_DIFFER_S = 60.0
"""Maximum by which the clock of the previous decision may be ahead."""

PUBLISH_EVERY_S = 60.0
PUBLISH_DIFFERENCE_AFTER_S = 15.0
PUBLISH_IDLE_EVERY_S = 600.0
"""Measurements are written to the status once a minute; a change of the rule or of the condition earlier, the same
measurements without any load later."""

IDLE_RULES = (Rule.STEADY, Rule.STARTING, Rule.IDLE)
"""Rules under which nothing of the history is waited for."""

_metrics_available = partial(ConditionValue, "MetricsAvailable")


@dataclass(frozen=True, slots=True)
class ScalingView:
    """One decision.

    Attributes:
        at: Time of the decision, Unix seconds.
        metrics: Whether they are available; None before the first scrape.
        starts: Measured startup times, for the next operator.
        observed_spec_replicas: The `spec.replicas` that the decision has taken into account.
        restored: Whether it is the decision of a former operator, from the status: nothing is measured yet.
    """

    replicas: int
    rule: Rule
    reason: str
    at: float
    source: str = ""
    metrics: ConditionValue | None = None
    signals: Signals = field(default_factory=Signals)
    load: TotalLoad = field(default_factory=TotalLoad)
    ready: int = 0
    time_to_ready_s: float | None = None
    history: History = field(default_factory=History)
    starts: Starts = field(default_factory=Starts)
    observed_spec_replicas: int | None = None
    restored: bool = False


def metrics_state(
    pods: Sequence[EnginePod],
    decision: Decision,
    problems: Mapping[str, str],
    failure: str | None,
    for_long: bool,
) -> ConditionValue:
    """The condition MetricsAvailable.

    A failure of the source counts at once if metrics are missing, else once its samples became old (`for_long`).
    """
    ready = sum(pod.ready for pod in pods)
    missing = decision.signals.missing
    several = "; ".join(f"{name}: {problem}" for name, problem in sorted(problems.items())[:3])
    if failure is not None and (for_long or not decision.metrics_available):
        return _metrics_available(
            False,
            "MetricsSourceUnavailable",
            f"{failure}; the number of replicas is kept",
        )
    if not decision.metrics_available:
        message = f"{missing} of {ready} ready replicas report no metrics; the number of replicas is kept: {several}"
        return _metrics_available(False, "ReplicasNotReporting", message)
    if not ready:
        return _metrics_available(True, "MetricsRead", "no replica is ready")
    message = f"{ready - missing} of {ready} ready replicas report metrics"
    return _metrics_available(
        True, "MetricsRead", f"{message}; {several}" if missing and several else message
    )


def stored_metrics(status: Mapping[str, Any]) -> ConditionValue | None:
    """The condition MetricsAvailable of a stored status; None without it."""
    for found in status.get("conditions") or ():
        if found.get("type") == "MetricsAvailable":
            return _metrics_available(found["status"] == "True", found["reason"], found.get("message", ""))
    return None


def worth_publishing(new: ScalingView, shown: ScalingView) -> bool:
    """Whether to write a decision to the status."""
    if (new.replicas, new.ready, _metrics(new)) != (shown.replicas, shown.ready, _metrics(shown)):
        return True
    if (new.rule, new.metrics) != (shown.rule, shown.metrics):
        every_s = PUBLISH_DIFFERENCE_AFTER_S
    else:
        every_s = PUBLISH_IDLE_EVERY_S if _is_idle(new) and _is_idle(shown) else PUBLISH_EVERY_S
    return new.at - shown.at >= every_s


def _is_idle(scaled: ScalingView) -> bool:
    """Whether there was no load for a minute, and no scale-down for which the next operator needs the history."""
    signals, load = scaled.signals, scaled.load
    return (
        not (signals.running or signals.waiting or load.queued or load.in_flight)
        and not rounded(signals.arrivals_per_s)
        and scaled.rule in IDLE_RULES
    )


def _metrics(scaled: ScalingView) -> str | None:
    return None if scaled.metrics is None else scaled.metrics.reason


def max_start_s(spec: TranslationDeploymentSpec) -> float:
    """Maximum time from a pod's creation to its readiness; the Deployment's progress deadline."""
    return float(seconds(spec.rollout.start_timeout) + PROGRESS_MARGIN_S)


def encode(history: History, starts: Starts) -> str:
    """The state of the autoscaler, encoded for the status."""
    return encode_state(json.dumps({**json.loads(history.to_json()), "starts": starts.to_fields()}))


def decode(word: Any, now: float) -> tuple[History, Any]:
    """Decode it.

    A history with times after `now` is ignored.

    Returns:
        The history, and the fields of `Starts`. If malformed: an empty history, which only delays scale-down, and
        None.
    """
    try:
        text = decode_state(word)
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return History(), None
    history = History.from_json(text)
    if history.begins_after(now + CLOCKS_DIFFER_S):
        history = History()
    return history, fields.get("starts") if isinstance(fields, Mapping) else None


def sizing(spec: TranslationDeploymentSpec, scaled: ScalingView | None) -> Proposal:
    """The autoscaler's decision in mode Internal, else `spec.replicas`.

    In every mode `spec.replicas` is the number of engine pods. In modes External, HPA and KEDA another controller
    writes it through the scale subresource, in mode Internal the operator: there a decision is ahead of it until it
    is written.
    """
    mode = spec.autoscaling_mode
    if mode == "Internal":
        if scaled is not None:
            return Proposal(scaled.replicas, scaled.rule, scaled.reason)
        return _between(spec)
    writer = "spec.replicas" if spec.autoscaling is None else f"spec.replicas (autoscaling {mode})"
    return Proposal(spec.replicas, Rule.SPEC, f"{writer} is {spec.replicas}")


def initial_replicas(
    spec: TranslationDeploymentSpec, status: Mapping[str, Any], deployment: Manifest | None
) -> Proposal:
    """Initial number of replicas: of the last decision, else of the Deployment, else of the spec."""
    scaling = status.get("scaling") or {}
    last = status.get("desiredReplicas") if scaling.get("mode") == "Internal" else None
    if last is None and deployment is not None:
        last = deployment["spec"].get("replicas")
    if last is None or spec.autoscaling is None:
        return _between(spec)
    replicas = min(max(int(last), spec.autoscaling.lowest_replicas), spec.autoscaling.max_replicas)
    if replicas == status.get("desiredReplicas") and scaling.get("rule") in set(Rule):
        return Proposal(replicas, Rule(scaling["rule"]), str(scaling.get("reason", "")))
    return Proposal(replicas, Rule.RESUMED, f"{count_of(replicas)}, as before the restart")


def _between(spec: TranslationDeploymentSpec) -> Proposal:
    scaling = spec.autoscaling
    low, high = (scaling.lowest_replicas, scaling.max_replicas) if scaling else (0, spec.replicas)
    replicas = min(max(spec.replicas, low), high)
    limits = "" if replicas == spec.replicas else f", minReplicas is {low} and maxReplicas {high}"
    return Proposal(replicas, Rule.RESUMED, f"spec.replicas is {spec.replicas}{limits}")
