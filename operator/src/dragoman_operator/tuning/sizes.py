"""The size of one deployment's pods, as tuning has it, and what tuning needs to know of the object."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from dragoman_operator.api.fields import seconds
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.v1alpha1 import TranslationDeployment, TranslationDeploymentSpec
from dragoman_operator.observed.snapshot import Manifest
from dragoman_operator.tuning.decision.state import State
from dragoman_operator.tuning.decision.step import Facts

PUBLISH_EVERY_S = 60.0
"""Figures that change nothing go to the status this often."""

SIZE_OPTION = "--max-num-seqs"
"""Of an engine pod's command line."""

LARGEST = 4096
"""As `spec.engine.maxNumSeqs` allows."""

_EXCLUDED: Mapping[str, Any] = {
    "engine": {"max_num_seqs"},
    **dict.fromkeys(("replicas", "autoscaling", "tuning", "rollout", "service", "network_policy"), True),
}
"""Of the spec: they change nothing of an engine's pace."""


@dataclass(frozen=True, slots=True)
class Tuned:
    """One look.

    Attributes:
        mode: Recommend or Apply.
        state: What was seen and decided.
        at: When, Unix seconds.
    """

    mode: str
    state: State
    at: float

    @property
    def holds(self) -> bool:
        """Whether the rollout has to stop at one pod of the new size, which is compared with those beside it."""
        return self.tried_beside is not None

    @property
    def tried_beside(self) -> int | None:
        """The size that one replica tries beside the others; None where none does."""
        trial = self.state.trial
        return trial.max_num_seqs if trial is not None and trial.side_by_side else None


@dataclass(frozen=True, slots=True)
class SizedPod:
    """An engine pod: the size that it was started with, the hash of its template, and whether it is ready."""

    max_num_seqs: int
    template: str
    ready: bool


def sized(td: TranslationDeployment, max_num_seqs: int) -> TranslationDeployment:
    """The object with another size."""
    if max_num_seqs == td.spec.engine.max_num_seqs:
        return td
    engine = td.spec.engine.model_copy(update={"max_num_seqs": max_num_seqs})
    return replace(td, spec=td.spec.model_copy(update={"engine": engine}))


def in_force(td: TranslationDeployment, tuned: Tuned | None) -> TranslationDeployment:
    """The object as autoscalers should take it: with the size that most pods have, whatever is tried on one."""
    return td if tuned is None else sized(td, tuned.state.max_num_seqs)


def for_pods(td: TranslationDeployment, tuned: Tuned | None) -> TranslationDeployment:
    """The object as the Deployment's template has it: with the size that is tried."""
    return td if tuned is None else sized(td, tuned.state.size_of_pods)


def version(spec: TranslationDeploymentSpec) -> str:
    """Digest of all that an engine's pace may depend on, but for the size."""
    fields = spec.model_dump(mode="json", exclude=_EXCLUDED)
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()[:16]


def facts(
    td: TranslationDeployment,
    pods: Sequence[SizedPod],
    desired: int,
    failed_before: bool,
    failure: str | None,
) -> Facts:
    """One look at the pods.

    Args:
        td: The object, as its spec has it.
        pods: Those that count.
        desired: Replicas that there should be.
        failed_before: Whether a former version runs because the spec's failed.
        failure: Why pods of a trial will not start; None where they may.
    """
    ready: dict[int, int] = {}
    for pod in pods:
        if pod.ready:
            ready[pod.max_num_seqs] = ready.get(pod.max_num_seqs, 0) + 1
    alike = len({(pod.max_num_seqs, pod.template) for pod in pods}) == 1
    rollout = td.spec.rollout
    return Facts(
        apply=td.spec.tuning.mode == "Apply",
        least=td.spec.engine.max_num_seqs if target_follows(td.spec) else 1,
        most=min(LARGEST, td.spec.engine.max_num_batched_tokens),
        window_s=float(seconds(td.spec.tuning.window)),
        start_s=float(seconds(rollout.start_timeout) + PROGRESS_MARGIN_S),
        desired=desired,
        rested=alike and len(pods) == desired == sum(ready.values()) and not failed_before,
        ready=ready,
        failure=failure,
    )


def target_follows(spec: TranslationDeploymentSpec) -> bool:
    """Whether an autoscaler keeps as many requests on a replica as its size says: then the load says no size."""
    scaling = spec.autoscaling
    if scaling is None or scaling.mode in ("Off", "External"):
        return False
    return scaling.target_concurrency is None and scaling.min_replicas < scaling.max_replicas


def size_of(pod: Manifest) -> int:
    """The size on a pod's command line; 0 where it has none, as a pod that somebody else made."""
    for container in pod["spec"].get("containers") or ():
        arguments = [str(argument) for argument in container.get("args") or ()]
        for option, value in pairwise(arguments):
            if option == SIZE_OPTION and value.isdecimal():
                return int(value)
    return 0


def worth_publishing(new: Tuned, shown: Tuned) -> bool:
    """Whether the status should say what was seen now."""
    return _steps(new.state) != _steps(shown.state) or new.at - shown.at >= PUBLISH_EVERY_S


def _steps(state: State) -> object:
    trial = state.trial
    stage = None if trial is None else (trial.max_num_seqs, trial.ready is not None)
    return (state.max_num_seqs, stage, state.recommendation, state.ended[:1], state.version)


def resting(status: Mapping[str, object]) -> bool:
    """Whether no former version had to be put back, as the status says."""
    rollout = status.get("rollout")
    return not (isinstance(rollout, Mapping) and rollout.get("failedTemplate"))
