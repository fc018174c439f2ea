"""State of tuning in the status: recommendation, trials and condition."""

from __future__ import annotations

from functools import partial

from dragoman_kube.times import timestamp
from dragoman_operator.api.status import (
    ConditionValue,
    SizeMeasurements,
    SizeRecommendation,
    SizeTrial,
    TuningStatus,
)
from dragoman_operator.tuning.decision.state import Ended, State, Trial
from dragoman_operator.tuning.sizes import TuningView

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
            queue_time_seconds=_rounded(evidence.queue_s, 4),
            time_per_output_token_seconds=_rounded(evidence.token_s, 6),
            output_tokens_per_second=_rounded(evidence.tokens_per_s, 1),
            kv_cache_usage_p95=_rounded(evidence.kv_p95, 3),
            preemptions_per_request=_rounded(evidence.preemptions, 4),
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


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
