"""State of tuning for one deployment, and what it takes from the spec."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
