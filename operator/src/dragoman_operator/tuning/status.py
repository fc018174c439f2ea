"""What the status tells of tuning: the recommendation with its figures, the trials, and the condition."""

from __future__ import annotations

from datetime import UTC, datetime

from dragoman_operator.api.status import (
    ConditionValue,
    SizeEvidence,
    SizeRecommendation,
    SizeTrial,
    TuningStatus,
)
from dragoman_operator.tuning.decision.state import Ended, State, Trial
from dragoman_operator.tuning.sizes import Tuned


def recommendation_status(tuned: Tuned) -> SizeRecommendation | None:
    """`status.recommendation`; None before there is one."""
    state = tuned.state
    if state.recommendation is None or state.evidence is None:
        return None
    figures = state.evidence
    return SizeRecommendation(
        max_num_seqs=state.recommendation.max_num_seqs,
        reason=state.recommendation.reason[:1024],
        since=_stamp(state.recommended),
        evidence=SizeEvidence(
            window_seconds=round(figures.window_s, 1),
            samples=round(figures.looks),
            requests=round(figures.requests),
            concurrency_p50=round(figures.p50, 2),
            concurrency_p95=round(figures.p95, 2),
            queue_share=round(figures.queue_ratio, 3),
            queue_seconds=_rounded(figures.queue_s, 4),
            seconds_per_output_token=_rounded(figures.token_s, 6),
            tokens_per_second=_rounded(figures.tokens_per_s, 1),
            kv_cache_usage_p95=_rounded(figures.kv_p95, 3),
            preemptions_per_request=_rounded(figures.preemptions, 4),
        ),
    )


def tuning_status(tuned: Tuned) -> TuningStatus:
    """`status.tuning`."""
    state = tuned.state
    return TuningStatus(
        mode=tuned.mode,
        max_num_seqs=state.max_num_seqs,
        trial=None if state.trial is None else _under_way(state, state.trial),
        trials=tuple(map(_over, state.ended)),
        memory=state.packed(),
    )


def tuning_condition(tuned: Tuned) -> ConditionValue:
    """The condition Tuning: whether a size is being tried, or what came of it."""
    state = tuned.state
    trial, found = state.trial, state.recommendation
    if trial is not None:
        under_way = _under_way(state, trial)
        message = f"{trial.max_num_seqs} instead of {state.max_num_seqs}: {under_way.reason}"
        return ConditionValue("Tuning", True, f"Size{under_way.result}", message)
    if found is None:
        return ConditionValue("Tuning", False, "Watching", "too few requests were seen for a recommendation")
    last = state.ended[0] if state.ended else None
    if last is not None and last.at >= state.recommended:
        message = f"maxNumSeqs {last.tried} instead of {last.before}: {last.reason}"
        return ConditionValue("Tuning", False, f"Size{_over(last).result}", message)
    differs = found.max_num_seqs != state.max_num_seqs
    return ConditionValue("Tuning", False, "SizeRecommended" if differs else "SizeFits", found.reason)


def _under_way(state: State, trial: Trial) -> SizeTrial:
    ready = trial.ready
    return SizeTrial(
        time=_stamp(trial.began if ready is None else ready),
        from_=state.max_num_seqs,
        to=trial.max_num_seqs,
        result="Starting" if ready is None else "Comparing",
        reason=trial.why[:1024],
    )


def _over(ended: Ended) -> SizeTrial:
    return SizeTrial(
        time=_stamp(ended.at),
        from_=ended.before,
        to=ended.tried,
        result="Applied" if ended.applied else "TurnedDown",
        reason=ended.reason[:1024],
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
