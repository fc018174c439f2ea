"""Tuning: measures the pods of each object with tuning, and recommends a maxNumSeqs.

The decisions are pure functions in `tuning.decision`; the reconciler reads them with `view`. The state is written to
the status, so that the next operator continues from it; a restart loses at most `PUBLISH_EVERY_S` of measurements.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import ClassVar

from dragoman_kube.objects import Key
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.v1alpha1 import TranslationDeployment, TranslationDeploymentSpec
from dragoman_operator.observed.drift import digest
from dragoman_operator.observed.snapshot import EnginePod, Observed
from dragoman_operator.scraping.engine_metrics import TUNING_NAMES
from dragoman_operator.scraping.values import Scrape
from dragoman_operator.tuning.decision.measurements import Measurements
from dragoman_operator.tuning.decision.state import (
    Observation,
    State,
    adopted,
    next_step,
    restored,
    with_observations,
)

PUBLISH_EVERY_S = 60.0
"""Interval of status updates without a change of the recommendation."""

MAX_SIZE = 4096
"""As `spec.engine.maxNumSeqs` allows."""

GAP_TICKS = 3.0
"""Two scrapes further apart than this many intervals are not compared."""

RAMP_S = 15.0
"""Nothing is measured for so long after a replica became ready: routers give it its full share after 10 s."""


@dataclass(frozen=True, slots=True)
class TuningView:
    """State of tuning at one time."""

    mode: str
    state: State
    at: float


def throughput_digest(td: TranslationDeployment) -> str:
    """Digest of all fields that influence the throughput of an engine, except maxNumSeqs."""
    fields = {name: value for name, value in td.pod_fields.items() if name != "rollout"}
    engine = {name: value for name, value in fields.get("engine", {}).items() if name != "max_num_seqs"}
    return digest({**fields, "engine": engine})


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


@dataclass
class Tuned:
    """One object that is tuned.

    Attributes:
        shown: The state that is in the status, or will be after the next reconciliation.
        settled: Template hash of the last version whose pods were all ready.
        replica_sets: The uids of the ReplicaSets whose pods are its replicas.
    """

    td: TranslationDeployment
    shown: TuningView
    state: State
    settled: str = ""
    replica_sets: Collection[str] = ()
    names: ClassVar[tuple[str, ...]] = TUNING_NAMES


class Tuner:
    """Measures all objects with tuning."""

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
        """The state of tuning of one object; None if tuning is off. Registers the object."""
        key, mode, now = Key(td.namespace, td.name), td.spec.tuning.mode, self._clock()
        if mode == "Off":
            self.forget(key)
            return None
        version, size = throughput_digest(td), td.spec.engine.max_num_seqs
        known = self._deployments.get(key)
        if known is None or known.td.uid != td.uid:
            word = (observed.status.get("tuning") or {}).get("state")
            state = restored(word, version, size, now)
            settled = str((observed.status.get("rollout") or {}).get("lastReadyTemplateHash") or "")
            known = self._deployments[key] = Tuned(td, TuningView(mode, state, now), state, settled)
        known.td, known.replica_sets = td, observed.replica_set_uids
        known.state = adopted(known.state, version, size, now)
        if worth_publishing(new := TuningView(mode, known.state, now), known.shown):
            known.shown = new
        return known.shown

    def forget(self, key: Key) -> None:
        """The object was deleted, or its tuning is off."""
        self._deployments.pop(key, None)

    def begin(self) -> dict[Key, Tuned]:
        """Start of a tick: the objects to evaluate."""
        return dict(self._deployments)

    async def evaluate(self, key: Key, known: Tuned, pods: list[EnginePod], scraped: Scrape) -> None:
        """Measure one object, and recommend at the end of a window."""
        if self._deployments.get(key) is not known:
            return
        now = self._clock()
        templates = {pod.template for pod in pods}
        if len(templates) == 1 and len(pods) >= known.td.spec.replicas and all(pod.ready for pod in pods):
            (known.settled,) = templates
        if templates != {known.settled} or any(pod.ready and now - pod.changed_s < RAMP_S for pod in pods):
            # Fewer pods have all the load, and old ones are not what the spec describes.
            scraped = Scrape()
            if not known.state.current.samples:
                known.state = replace(known.state, current=Measurements(started=now))
        sizes = {pod.uid: pod.max_num_seqs for pod in pods}
        measured = with_observations(
            known.state,
            (
                Observation(sizes[uid], before, after)
                for uid, (before, after) in scraped.pairs.items()
                if after.at - before.at <= GAP_TICKS * self._interval_s
            ),
        )
        spec = known.td.spec
        window_s = float(seconds(spec.tuning.window))
        known.state = next_step(measured, minimum_size(spec), maximum_size(spec), window_s, now)
        if worth_publishing(TuningView(known.shown.mode, known.state, now), known.shown):
            self._enqueue(key)
