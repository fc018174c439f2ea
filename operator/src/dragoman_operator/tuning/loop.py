"""Tuning at work: at every tick it reads the pods of each object that asks for it, and goes a step on.

What is decided are the pure functions of `core.tuning`; who carries it out is the reconciler, which asks `view`. The
state is kept here and written to the status with every step, so that the next operator goes on where this one
stopped; all that is lost is one look.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from dragoman_kube.kinds import DEPLOYMENT
from dragoman_kube.objects import Key
from dragoman_kube.work_queue import BACKOFF
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.sources.pods import PodPages
from dragoman_operator.errors import MetricsError
from dragoman_operator.observed.diagnosis import Finding
from dragoman_operator.observed.engine_pods import engine_pods
from dragoman_operator.observed.ownership import own_pods
from dragoman_operator.observed.snapshot import Manifest, Observed
from dragoman_operator.rollout.rollback import permanent_failure
from dragoman_operator.rollout.strategy import template_hash
from dragoman_operator.tuning.decision.counters import Counters, counters
from dragoman_operator.tuning.decision.state import State, adopted, resumed
from dragoman_operator.tuning.decision.step import Observation, next_step, observe
from dragoman_operator.tuning.sizes import (
    PodSize,
    TuningView,
    facts,
    resting,
    size_of,
    version,
    worth_publishing,
)

log = logging.getLogger(__name__)

GAP_TICKS = 3.0
"""Two readings further apart are not compared: what happened between them is not known."""


@dataclass
class _Deployment:
    """One object that is tuned.

    Attributes:
        td: The object, as its spec has it.
        shown: What the status says, or is about to.
        state: What was seen and decided.
        desired: Replicas that there should be.
        resting: Whether no former version had to be put back.
        replica_sets: The uids of the ReplicaSets whose pods are its replicas.
        last: The last reading of each pod, by uid.
        failures: Ticks in a row that failed unexpectedly.
        retry_s: When the next one is due after that, Unix seconds.
    """

    td: TranslationDeployment
    shown: TuningView
    state: State
    desired: int = 0
    resting: bool = True
    replica_sets: Collection[str] = ()
    last: dict[str, Counters] = field(default_factory=dict)
    failures: int = 0
    retry_s: float = 0.0


class Tuner:
    """Watches, recommends and tries sizes for all objects whose spec asks for it.

    Args:
        pods: The pods with the label of an object, whoever owns them; None where they may not be read.
        pages: Reads pods' metrics.
        mark: Has the reconciler look at an object.
        tick_s: Seconds between two looks.
        on_failure: Called for each object whose tuning failed unexpectedly.
        clock: Unix seconds.
    """

    def __init__(
        self,
        pods: Callable[[Key], Sequence[Manifest] | None],
        pages: PodPages,
        mark: Callable[[Key], None],
        tick_s: float,
        on_failure: Callable[[Key], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pods = pods
        self._pages = pages
        self._mark = mark
        self._tick_s = tick_s
        self._on_failure = on_failure
        self._clock = clock
        self._deployments: dict[Key, _Deployment] = {}

    def view(self, td: TranslationDeployment, observed: Observed) -> TuningView | None:
        """What there is to say of one object; None where tuning is off. Remembers the object.

        A trial whose pods will not start ends here, before anybody else takes it for the spec's fault.

        Args:
            td: The object as it is now.
            observed: What was found, with the status as stored.
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
            known = self._deployments[key] = _Deployment(td, TuningView(mode, state, now), state)
        known.td, known.replica_sets = td, observed.replica_set_uids
        known.state = adopted(known.state, digest, size, now)
        if mode != "Apply":
            known.state = known.state.unapplied(now)
        deployment = observed.children.get(DEPLOYMENT)
        known.desired = int(deployment["spec"].get("replicas") or 0) if deployment else 0
        known.resting = resting(observed.status)
        if (trial := known.state.trial) is not None:
            tried = [pod for pod in observed.pods if size_of(pod) == trial.max_num_seqs]
            self._step(known, observed.pods, now, permanent_failure(tried, observed))
        if (
            worth_publishing(new := TuningView(mode, known.state, now), known.shown)
            or known.shown.mode != mode
        ):
            known.shown = new
        return known.shown

    def forget(self, key: Key) -> None:
        """The object is gone, or no longer tuned."""
        self._deployments.pop(key, None)

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self.tick()
            except Exception:
                log.exception("unexpected failure of a tick")
            await asyncio.sleep(max(0.0, self._tick_s - (loop.time() - began)))

    async def tick(self) -> None:
        """Take one step for every object, but for those whose pods may not be read."""
        if not self._deployments:
            return
        replicas = {
            key: own_pods(found, known.replica_sets)
            for key, known in self._deployments.items()
            if (found := self._pods(key)) is not None
        }
        self._pages.keep({pod["metadata"]["uid"] for pods in replicas.values() for pod in pods})
        await asyncio.gather(
            *(self._look(key, self._deployments[key], pods) for key, pods in replicas.items())
        )

    async def _look(self, key: Key, known: _Deployment, pods: list[Manifest]) -> None:
        if known.failures and self._clock() < known.retry_s:
            return
        try:
            heard = await self._heard(pods)
            if self._deployments.get(key) is not known:
                return
            known.state = observe(known.state, self._looks(known, pods, heard))
            known.last = heard
            self._step(known, pods, self._clock())
            if worth_publishing(TuningView(known.shown.mode, known.state, self._clock()), known.shown):
                self._mark(key)
            known.failures = 0
        except Exception:
            # The other objects go on.
            known.failures += 1
            known.retry_s = self._clock() + BACKOFF.delay_s(known.failures)
            log.exception("unexpected failure of tuning", extra={"key": str(key)})
            self._on_failure(key)

    async def _heard(self, pods: list[Manifest]) -> dict[str, Counters]:
        ready = [pod for pod in engine_pods(pods) if pod.ready and pod.address]

        async def read(uid: str, address: str) -> Counters | None:
            try:
                return await self._pages.read(uid, address, lambda page: counters(page, self._clock()))
            except MetricsError as error:
                log.debug("no metrics of pod %s: %s", uid, error)
                return None

        read_now = await asyncio.gather(*(read(pod.uid, pod.address) for pod in ready))
        return {pod.uid: now for pod, now in zip(ready, read_now, strict=True) if now is not None}

    def _looks(
        self, known: _Deployment, pods: list[Manifest], heard: dict[str, Counters]
    ) -> list[Observation]:
        sizes = {pod["metadata"]["uid"]: size_of(pod) for pod in pods}
        return [
            Observation(sizes[uid], before, now)
            for uid, now in heard.items()
            if (before := known.last.get(uid)) is not None and now.at - before.at <= GAP_TICKS * self._tick_s
        ]

    def _step(
        self, known: _Deployment, pods: Sequence[Manifest], now: float, failure: Finding | None = None
    ) -> None:
        before = known.state
        manifests = {pod["metadata"]["uid"]: pod for pod in pods}
        several = [
            PodSize(size_of(manifests[pod.uid]), template_hash(manifests[pod.uid]), pod.ready)
            for pod in engine_pods(pods)
        ]
        problem = failure.message if failure else None
        seen = facts(known.td, several, known.desired, not known.resting, problem)
        known.state = next_step(before, seen, now)
        if known.state.ended[:1] != before.ended[:1]:
            ended = known.state.ended[0]
            log.info("%d → %d: %s", ended.before, ended.tried, ended.reason)
