"""Tuning: measures the pods of each object with tuning, and takes the next step of its measurement or trial.

The decisions are pure functions in `tuning.decision`; the reconciler reads them with `view` and applies them. The
state is written to the status with every step, so that the next operator continues from it; a restart loses one
sample.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import ClassVar

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import Key
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.sources.engine_metrics import TUNING_NAMES
from dragoman_operator.autoscaling.sources.pods import SamplesResult
from dragoman_operator.observed.diagnosis import Finding
from dragoman_operator.observed.snapshot import EnginePod, Observed, engine_pods, size_of
from dragoman_operator.rollout import permanent_failure
from dragoman_operator.tuning.decision.step import Observation, State, adopted, next_step, observe, resumed
from dragoman_operator.tuning.view import (
    TuningView,
    facts,
    version,
    worth_publishing,
)

log = logging.getLogger(__name__)

GAP_TICKS = 3.0
"""Two scrapes further apart than this many intervals are not compared."""


@dataclass
class Tuned:
    """One object that is tuned.

    Attributes:
        shown: The state that is in the status, or will be after the next reconciliation.
        resting: Whether no rollback is in force.
        replica_sets: The uids of the ReplicaSets whose pods are its replicas.
    """

    td: TranslationDeployment
    shown: TuningView
    state: State
    desired: int = 0
    resting: bool = True
    replica_sets: Collection[str] = ()
    names: ClassVar[tuple[str, ...]] = TUNING_NAMES


class Tuner:
    """Measures, recommends and tries sizes for all objects with tuning."""

    def __init__(
        self,
        enqueue: Callable[[Key], None],
        interval_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._enqueue = enqueue
        self._interval_s = interval_s
        self._clock = clock
        self._deployments: dict[Key, Tuned] = {}

    def view(self, td: TranslationDeployment, observed: Observed) -> TuningView | None:
        """The state of tuning of one object; None if tuning is off. Registers the object.

        A trial whose pods fail to start ends here, before the rollout counts it as a failure of the spec.
        """
        key, mode, now = Key(td.namespace, td.name), td.spec.tuning.mode, self._clock()
        if mode == "Off":
            self.forget(key)
            return None
        digest, size = version(td.spec), td.spec.engine.max_num_seqs
        known = self._deployments.get(key)
        if known is None or known.td.uid != td.uid:
            word = (observed.status.get("tuning") or {}).get("state")
            state = resumed(word, digest, size, now)
            known = self._deployments[key] = Tuned(td, TuningView(mode, state, now), state)
        known.td, known.replica_sets = td, observed.replica_set_uids
        known.state = adopted(known.state, digest, size, now)
        if mode != "Apply":
            known.state = known.state.unapplied(now)
        deployment = observed.children.get(DEPLOYMENT)
        known.desired = int(deployment["spec"].get("replicas") or 0) if deployment else 0
        known.resting = not (observed.status.get("rollout") or {}).get("failedTemplateDigest")
        if (trial := known.state.trial) is not None:
            tried = [pod for pod in observed.pods if size_of(pod) == trial.max_num_seqs]
            self._step(known, engine_pods(observed.pods), now, permanent_failure(tried, observed))
        if (
            worth_publishing(new := TuningView(mode, known.state, now), known.shown)
            or known.shown.mode != mode
        ):
            known.shown = new
        return known.shown

    def forget(self, key: Key) -> None:
        """The object was deleted, or its tuning is off."""
        self._deployments.pop(key, None)

    def begin(self) -> dict[Key, Tuned]:
        """Start of a tick: the objects to evaluate."""
        return dict(self._deployments)

    async def evaluate(self, key: Key, known: Tuned, pods: list[EnginePod], scraped: SamplesResult) -> None:
        """Measure one object, and take the next step."""
        if self._deployments.get(key) is not known:
            return
        sizes = {pod.uid: pod.max_num_seqs for pod in pods}
        known.state = observe(
            known.state,
            (
                Observation(sizes[uid], before, now)
                for uid, (before, now) in scraped.pairs.items()
                if now.at - before.at <= GAP_TICKS * self._interval_s
            ),
        )
        self._step(known, pods, self._clock())
        if worth_publishing(TuningView(known.shown.mode, known.state, self._clock()), known.shown):
            self._enqueue(key)

    def _step(self, known: Tuned, pods: list[EnginePod], now: float, failure: Finding | None = None) -> None:
        before = known.state
        problem = failure.message if failure else None
        seen = facts(known.td, pods, known.desired, not known.resting, problem)
        known.state = next_step(before, seen, now)
        if known.state.ended[:1] != before.ended[:1]:
            ended = known.state.ended[0]
            log.info("%d → %d: %s", ended.before, ended.tried, ended.reason)
