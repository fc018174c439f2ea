"""`status.scaling`, `status.rollout`, `status.tuning` and `status.recommendation`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import ValidationError

from dragoman_kube.times import timestamp
from dragoman_operator.api.status import (
    ExpectedWait,
    RolloutStatus,
    ScalingChange,
    ScalingStatus,
    SignalsStatus,
    SizeMeasurements,
    SizeRecommendation,
    TuningStatus,
    rounded,
)
from dragoman_operator.autoscaling.decision.values import Proposal
from dragoman_operator.autoscaling.view import ScalingView, encode
from dragoman_operator.observed.snapshot import Observed, is_live, template_hash
from dragoman_operator.resources.plan import ReconcileInput, Target
from dragoman_operator.tuning.loop import TuningView

MAX_CHANGES = 5
"""Maximum number of changes in the status."""


def scaling_status(given: ReconcileInput, sized: Proposal, pods: int) -> ScalingStatus:
    """`status.scaling`; `pods` is the number of existing ones."""
    scaled, old = given.scaled, given.observed.status
    if scaled and scaled.restored and (stored := old.get("scaling")):
        # Measurements and state of the former operator stay until there are new ones.
        fields = ScalingStatus.model_validate(stored)
    elif scaled:
        fields = _decision_status(scaled)
    else:
        fields = ScalingStatus(rule=sized.rule, reason=sized.reason)
    return fields.model_copy(
        update={
            "mode": given.td.spec.autoscaling_mode,
            "desired_replicas": sized.replicas,
            "current_replicas": pods,
            "changes": _changes(old, sized, given.observed.now),
        }
    )


def _decision_status(scaled: ScalingView) -> ScalingStatus:
    """Decision, measurements and encoded state."""
    signals, load = scaled.signals, scaled.load
    return ScalingStatus(
        rule=scaled.rule,
        reason=scaled.reason[:1024],
        evaluation_time=timestamp(scaled.at),
        source=scaled.source[:512] or None,
        time_to_ready_seconds=rounded(scaled.time_to_ready_s),
        signals=SignalsStatus(
            running=rounded(signals.running),
            waiting=rounded(signals.waiting),
            queued_at_routers=load.queued,
            in_flight_at_routers=load.in_flight,
            replicas_not_reporting=signals.missing,
            routers_not_reporting=load.not_reporting,
            arrivals_per_second=rounded(signals.arrivals_per_s),
            seconds_per_request=rounded(signals.service_s),
            kv_cache_usage=rounded(signals.kv_usage),
            replicas_by_load=rounded(signals.by_load),
            replicas_by_kv_cache=rounded(signals.by_kv_cache),
            stabilization_window_seconds=rounded(signals.window_s),
        ),
        expectation=signals.expectation,
        expected=tuple(
            ExpectedWait(replicas=each.replicas, late_ratio=round(each.late_ratio, 4))
            for each in signals.expected
        ),
        state=encode(scaled.history, scaled.starts),
        observed_spec_replicas=scaled.observed_spec_replicas,
    )


def _changes(old: Mapping[str, Any], sized: Proposal, now: datetime) -> tuple[ScalingChange, ...]:
    """The last changes, newest first; one more if the number differs from that of the status."""
    stored = (old.get("scaling") or {}).get("changes") or ()
    known = tuple(change for entry in stored if (change := _stored_change(entry)) is not None)
    before = old.get("desiredReplicas")
    if before is None or before == sized.replicas:
        return known
    change = ScalingChange(
        time=timestamp(now),
        from_=before,
        to=sized.replicas,
        rule=sized.rule,
        reason=sized.reason[:1024],
    )
    return (change, *known)[:MAX_CHANGES]


def _stored_change(entry: object) -> ScalingChange | None:
    """A stored change; None if it is malformed."""
    try:
        return ScalingChange.model_validate(entry)
    except ValidationError:
        return None


def rollout_status(observed: Observed, target: Target, *, complete: bool) -> RolloutStatus | None:
    """`status.rollout`: the last template whose pods were all ready, and the version that failed."""
    rollout = observed.status.get("rollout") or {}
    good, of = str(rollout.get("lastReadyTemplateHash") or ""), str(rollout.get("lastReadySource") or "")
    source, kept = target.version.source, target.kept
    failure = kept.reason if kept else None
    running = {template_hash(pod) for pod in filter(is_live, observed.pods)}
    ready = complete and len(running) == 1
    if ready:
        good = running.pop()
    if failure is None and (ready or kept):
        of = source
    if not good and failure is None:
        return None
    return RolloutStatus(
        last_ready_template_hash=good or None,
        last_ready_source=of,
        failed_template_digest=None if failure is None else source,
        reason=failure,
    )


def recommendation_status(tuned: TuningView) -> SizeRecommendation | None:
    """`status.recommendation`; None before the first."""
    state = tuned.state
    if state.recommendation is None or state.evidence is None:
        return None
    evidence = state.evidence
    return SizeRecommendation(
        max_num_seqs=state.recommendation.max_num_seqs,
        reason=state.recommendation.reason[:1024],
        first_recommended_time=timestamp(state.recommended),
        measurements=SizeMeasurements(
            window_seconds=round(evidence.window_s, 1),
            samples=round(evidence.samples),
            requests=round(evidence.requests),
            concurrency_p50=round(evidence.p50, 2),
            concurrency_p95=round(evidence.p95, 2),
            queued_request_ratio=round(evidence.queue_ratio, 3),
            queue_time_seconds=rounded(evidence.queue_s, 4),
            time_per_output_token_seconds=rounded(evidence.token_s, 6),
            output_tokens_per_second=rounded(evidence.tokens_per_s, 1),
            kv_cache_usage_p95=rounded(evidence.kv_p95, 3),
            preemptions_per_request=rounded(evidence.preemptions, 4),
        ),
    )


def tuning_status(tuned: TuningView) -> TuningStatus:
    """`status.tuning`."""
    return TuningStatus(mode=tuned.mode, state=tuned.state.encoded())
