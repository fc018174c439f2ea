"""State of tuning for one deployment: the fields and the condition of the status."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman_kube.times import timestamp
from dragoman_operator.api.status import (
    ConditionValue,
    SizeMeasurements,
    SizeRecommendation,
    TuningStatus,
    rounded,
)
from dragoman_operator.api.v1alpha1 import TranslationDeploymentSpec
from dragoman_operator.tuning.decision.state import State

PUBLISH_EVERY_S = 60.0
"""Interval of status updates without a change of the recommendation."""

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


def version(spec: TranslationDeploymentSpec) -> str:
    """Digest of all fields that influence the throughput of an engine, except maxNumSeqs."""
    fields = spec.model_dump(mode="json", exclude=_EXCLUDED)
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def minimum_size(spec: TranslationDeploymentSpec) -> int:
    """The minimum of a recommendation: the spec's own if the autoscaler's target follows it.

    The load of a replica then follows maxNumSeqs, and does not determine it.
    """
    scaling = spec.autoscaling
    if scaling is None or scaling.mode in ("Off", "External") or scaling.target_concurrency is not None:
        return 1
    return spec.engine.max_num_seqs if scaling.lowest_replicas < scaling.max_replicas else 1


def maximum_size(spec: TranslationDeploymentSpec) -> int:
    """The maximum of a recommendation."""
    return min(MAX_SIZE, spec.engine.max_num_batched_tokens)


def worth_publishing(new: TuningView, shown: TuningView) -> bool:
    """Whether to write the state to the status."""
    changed = (new.state.recommendation, new.state.version) != (
        shown.state.recommendation,
        shown.state.version,
    )
    return changed or new.mode != shown.mode or new.at - shown.at >= PUBLISH_EVERY_S


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
    return TuningStatus(mode=tuned.mode, state=tuned.state.encoded())


def tuning_condition(tuned: TuningView) -> ConditionValue:
    """The condition Tuning: whether another maxNumSeqs is recommended."""
    found = tuned.state.recommendation
    if found is None:
        return _tuning(False, "CollectingMetrics", "too few requests were measured for a recommendation")
    differs = found.max_num_seqs != tuned.state.spec_size
    return _tuning(differs, "RecommendationProvided" if differs else "UpToDate", found.reason)
