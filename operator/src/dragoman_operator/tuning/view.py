"""State of tuning for one deployment: its maxNumSeqs, and the fields and condition of the status."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dragoman_kube.times import timestamp
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.status import (
    ConditionValue,
    SizeMeasurements,
    SizeRecommendation,
    SizeTrial,
    TuningStatus,
    rounded,
)
from dragoman_operator.api.v1alpha1 import TranslationDeployment, TranslationDeploymentSpec
from dragoman_operator.autoscaling.status import max_start_s
from dragoman_operator.observed.snapshot import EnginePod
from dragoman_operator.tuning.decision.step import Ended, Facts, State, Trial

PUBLISH_EVERY_S = 60.0
"""Interval of status updates without a change of state."""

MAX_SIZE = 4096
"""As `spec.engine.maxNumSeqs` allows."""

_EXCLUDED: Mapping[str, Any] = {
    "engine": {"max_num_seqs"},
    **dict.fromkeys(("replicas", "autoscaling", "tuning", "rollout", "service", "network_policy"), True),
}
"""Fields of the spec without influence on the throughput of an engine."""


@dataclass(frozen=True, slots=True)
class TuningView:
    """State of tuning at one time."""

    mode: str
    state: State
    at: float

    @property
    def trial_size(self) -> int | None:
        """The maxNumSeqs of a side-by-side trial: the rollout pauses after its first pod; None without one."""
        trial = self.state.trial
        return trial.max_num_seqs if trial is not None and trial.side_by_side else None


def sized(td: TranslationDeployment, max_num_seqs: int) -> TranslationDeployment:
    """The object with another maxNumSeqs."""
    if max_num_seqs == td.spec.engine.max_num_seqs:
        return td
    engine = td.spec.engine.model_copy(update={"max_num_seqs": max_num_seqs})
    return replace(td, spec=td.spec.model_copy(update={"engine": engine}))


def in_force(td: TranslationDeployment, tuned: TuningView | None) -> TranslationDeployment:
    """The object for autoscalers: with the maxNumSeqs in use, without that of a trial."""
    return td if tuned is None else sized(td, tuned.state.max_num_seqs)


def for_pods(td: TranslationDeployment, tuned: TuningView | None) -> TranslationDeployment:
    """The object for the Deployment's template: with the maxNumSeqs of a trial."""
    return td if tuned is None else sized(td, tuned.state.size_of_pods)


def version(spec: TranslationDeploymentSpec) -> str:
    """Digest of all fields that influence the throughput of an engine, except maxNumSeqs."""
    fields = spec.model_dump(mode="json", exclude=_EXCLUDED)
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def facts(
    td: TranslationDeployment,
    pods: Sequence[EnginePod],
    desired: int,
    failed_before: bool,
    failure: str | None,
) -> Facts:
    """Input of the next step."""
    ready = Counter(pod.max_num_seqs for pod in pods if pod.ready)
    alike = len({(pod.max_num_seqs, pod.template) for pod in pods}) == 1
    return Facts(
        apply=td.spec.tuning.mode == "Apply",
        minimum=td.spec.engine.max_num_seqs if target_follows(td.spec) else 1,
        maximum=min(MAX_SIZE, td.spec.engine.max_num_batched_tokens),
        window_s=float(seconds(td.spec.tuning.window)),
        start_s=max_start_s(td.spec),
        desired=desired,
        rested=alike and len(pods) == desired == ready.total() and not failed_before,
        ready=ready,
        failure=failure,
    )


def target_follows(spec: TranslationDeploymentSpec) -> bool:
    """Whether the autoscaler's target depends on maxNumSeqs; the load then does not determine it."""
    scaling = spec.autoscaling
    if scaling is None or scaling.mode in ("Off", "External"):
        return False
    return scaling.target_concurrency is None and scaling.min_replicas < scaling.max_replicas


def worth_publishing(new: TuningView, shown: TuningView) -> bool:
    """Whether to write the state to the status."""
    return _steps(new.state) != _steps(shown.state) or new.at - shown.at >= PUBLISH_EVERY_S


def _steps(state: State) -> object:
    trial = state.trial
    stage = None if trial is None else (trial.max_num_seqs, trial.ready is not None)
    return (state.max_num_seqs, stage, state.recommendation, state.ended[:1], state.version)


_tuning = partial(ConditionValue, "Tuning")


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
    state = tuned.state
    return TuningStatus(
        mode=tuned.mode,
        max_num_seqs=state.max_num_seqs,
        trial=None if state.trial is None else _under_way(state, state.trial),
        trials=tuple(map(_over, state.ended)),
        state=state.encoded(),
    )


def tuning_condition(tuned: TuningView) -> ConditionValue:
    """The condition Tuning: the trial in progress, or its result."""
    state = tuned.state
    trial, found = state.trial, state.recommendation
    if trial is not None:
        under_way = _under_way(state, trial)
        message = f"{trial.max_num_seqs} instead of {state.max_num_seqs}: {under_way.reason}"
        return _tuning(True, f"Trial{under_way.result}", message)
    if found is None:
        return _tuning(False, "CollectingMetrics", "too few requests were measured for a recommendation")
    last = state.ended[0] if state.ended else None
    if last is not None and last.at >= state.recommended:
        message = f"maxNumSeqs {last.tried} instead of {last.before}: {last.reason}"
        return _tuning(False, f"Trial{_over(last).result}", message)
    differs = found.max_num_seqs != state.max_num_seqs
    return _tuning(False, "RecommendationProvided" if differs else "UpToDate", found.reason)


def _under_way(state: State, trial: Trial) -> SizeTrial:
    ready = trial.ready
    return SizeTrial(
        time=timestamp(trial.started if ready is None else ready),
        from_=state.max_num_seqs,
        to=trial.max_num_seqs,
        result="Starting" if ready is None else "Comparing",
        reason=trial.reason[:1024],
    )


def _over(ended: Ended) -> SizeTrial:
    return SizeTrial(
        time=timestamp(ended.at),
        from_=ended.before,
        to=ended.tried,
        result="Applied" if ended.applied else "Rejected",
        reason=ended.reason[:1024],
    )
