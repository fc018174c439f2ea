"""The autoscaler at work: at every tick it reads, decides, and has changed what has to change.

What is decided is the pure function `recommend`; who carries it out is the reconciler, which asks `view`. History
is kept here and written to the status with the decision, so that the next operator goes on where this one stopped.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman_kube.objects import Key
from dragoman_kube.work_queue import BACKOFF
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision import TotalLoad, recommend
from dragoman_operator.autoscaling.decision.observation import STALE_TICKS
from dragoman_operator.autoscaling.replicas import mode_of, resumed
from dragoman_operator.autoscaling.sources.choice import MetricSources
from dragoman_operator.autoscaling.sources.routers import Routers
from dragoman_operator.autoscaling.sources.samples import SamplesResult
from dragoman_operator.autoscaling.starts import Starts, samples_of
from dragoman_operator.autoscaling.status import (
    ScalingView,
    decode,
    max_start_s,
    metrics_state,
    policy_of,
    worth_publishing,
)
from dragoman_operator.observed.engine_pods import EnginePod, engine_pods
from dragoman_operator.observed.ownership import own_pods
from dragoman_operator.observed.snapshot import Manifest

log = logging.getLogger(__name__)


@dataclass
class _Deployment:
    """One object that is scaled by load."""

    td: TranslationDeployment
    shown: ScalingView
    """What the status says, or is about to."""
    latest: ScalingView
    requested_at_s: float
    """When the number of replicas last changed."""
    starts: Starts
    replica_sets: Collection[str] = ()
    """The uids of the ReplicaSets whose pods are its replicas."""
    interval_s: float = 0.0
    failure: str | None = None
    failing_since: float | None = None
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Changes of the number of replicas, by direction and rule."""
    failures: int = 0
    """Decisions in a row that failed unexpectedly."""
    retry_s: float = 0.0
    """When the next one is due after that, Unix seconds."""


class Autoscaler:
    """Decides for all objects in mode Internal.

    Args:
        pods: The pods with the label of an object, whoever owns them; None where they may not be read.
        router_pods: The pods of the routers that are trusted.
        sources: Where metrics come from.
        routers: Where held requests are told.
        mark: Has the reconciler look at an object.
        tick_s: Seconds between two decisions.
        on_failure: Called for each object whose decision failed unexpectedly.
        clock: Unix seconds.
    """

    def __init__(
        self,
        pods: Callable[[Key], Sequence[Manifest] | None],
        router_pods: Callable[[], Iterable[Manifest]],
        sources: MetricSources,
        routers: Routers,
        mark: Callable[[Key], None],
        tick_s: float,
        on_failure: Callable[[Key], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pods = pods
        self._router_pods = router_pods
        self._sources = sources
        self._routers = routers
        self._mark = mark
        self._tick_s = tick_s
        self._on_failure = on_failure
        self._clock = clock
        self._deployments: dict[Key, _Deployment] = {}
        self._delegated: set[Key] = set()
        self.last_tick_s = 0.0

    def view(
        self,
        td: TranslationDeployment,
        status: Mapping[str, Any],
        deployment: Manifest | None,
        replica_sets: Collection[str],
    ) -> ScalingView | None:
        """What there is to say of one object; None where it is not ours to decide. Remembers the object.

        Args:
            td: The object as it is now.
            status: Its status as stored, for the start.
            deployment: Its Deployment, where there is one.
            replica_sets: The uids of that one's ReplicaSets.
        """
        key = Key(td.namespace, td.name)
        if mode_of(td.spec) != "Internal":
            self.forget(key)
            self._delegated.add(key)
            return None
        known = self._deployments.get(key)
        if known is None or known.td.uid != td.uid:
            known = self._deployments[key] = self._resumed(td, status, deployment)
            self._delegated.discard(key)
        known.td, known.replica_sets = td, replica_sets
        return known.shown

    def forget(self, key: Key) -> None:
        """The object is gone, or somebody else's to scale."""
        self._deployments.pop(key, None)
        self._delegated.discard(key)

    def wake(self, key: Key) -> None:
        """Decide at once where a router holds requests and there are no replicas."""
        deployment = self._deployments.get(key)
        if deployment is None or deployment.latest.replicas > 0:
            return
        try:
            self._decide(key, deployment, [], SamplesResult(failure=deployment.failure))
        except Exception:
            self._failed(key, deployment)

    def follow_routers(self) -> None:
        """Follow the routers that run now; called when a router's pod changes."""
        self._routers.follow(engine_addresses(self._router_pods()))

    def latest(self) -> dict[Key, ScalingView]:
        """The last decision of each object, for the metrics."""
        return {key: deployment.latest for key, deployment in self._deployments.items()}

    def changes(self) -> dict[Key, Counter[tuple[str, str]]]:
        """Changes of each object's number of replicas by direction and rule, for the metrics."""
        return {key: deployment.changes for key, deployment in self._deployments.items()}

    def loads(self) -> dict[Key, TotalLoad]:
        """What the routers say of each object that is known, in whatever mode."""
        return {key: self._routers.load(key) for key in (*self._deployments, *self._delegated)}

    async def run(self) -> None:
        """Tick until cancelled."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    await self.tick()
                except Exception:
                    log.exception("unexpected failure of a tick")
                self.last_tick_s = loop.time() - began
                await asyncio.sleep(max(0.0, self._tick_s - self.last_tick_s))
        finally:
            await self._routers.aclose()

    async def tick(self) -> None:
        """Decide once for every object: each as soon as its own pods have answered.

        Where pods may not be read, nothing is decided: they are not gone, they are not known.
        """
        self.follow_routers()
        if not self._deployments:
            self._sources.begin((), ())
            return
        replicas = {
            key: engine_pods(own_pods(found, deployment.replica_sets))
            for key, deployment in self._deployments.items()
            if (found := self._pods(key)) is not None
        }
        self._sources.begin(self._deployments, {pod.uid for pods in replicas.values() for pod in pods})
        # In another order each time: where not all can be read in time, it is not always the same ones.
        deployments = random.sample(list(replicas.items()), len(replicas))
        await asyncio.gather(*(self._look(key, self._deployments[key], pods) for key, pods in deployments))

    async def _look(self, key: Key, deployment: _Deployment, pods: list[EnginePod]) -> None:
        if deployment.failures and self._clock() < deployment.retry_s:
            return
        try:
            deployment.starts = deployment.starts.seen(pods, max_start_s(deployment.td.spec))
            heard = await self._sources.read(deployment.td, pods)
            if self._deployments.get(key) is deployment:
                self._decide(key, deployment, pods, heard)
        except Exception:
            self._failed(key, deployment)
        else:
            deployment.failures = 0

    def _failed(self, key: Key, deployment: _Deployment) -> None:
        """Log and count the exception that is being handled; the other objects go on."""
        deployment.failures += 1
        deployment.retry_s = self._clock() + BACKOFF.delay_s(deployment.failures)
        log.exception("unexpected failure of a decision", extra={"key": str(key)})
        self._on_failure(key)

    def _decide(self, key: Key, deployment: _Deployment, pods: list[EnginePod], heard: SamplesResult) -> None:
        before = deployment.latest
        now = max(self._clock(), before.at)
        load = self._routers.load(key)
        deployment.interval_s = heard.interval_s or deployment.interval_s
        policy = policy_of(deployment.td.spec, self._tick_s, deployment.interval_s)
        samples = samples_of(
            before.replicas,
            deployment.requested_at_s,
            pods,
            heard.samples,
            load,
            deployment.starts.time_to_ready_s,
            now,
        )
        decision = recommend(policy, samples, before.history, now)
        deployment.failure = heard.failure
        if heard.failure is None:
            deployment.failing_since = None
        elif deployment.failing_since is None:
            deployment.failing_since = now
        since = deployment.failing_since
        failing = since is not None and now - since >= STALE_TICKS * policy.tick_s
        deployment.latest = ScalingView(
            replicas=decision.replicas,
            rule=decision.rule.value,
            reason=decision.reason,
            at=now,
            source=self._sources.named(deployment.td),
            metrics=metrics_state(pods, decision, heard.problems, heard.failure, failing),
            signals=decision.signals,
            load=load,
            ready=samples.ready,
            time_to_ready_s=samples.time_to_ready_s,
            history=decision.history,
            starts=deployment.starts,
        )
        if decision.replicas != before.replicas:
            deployment.requested_at_s = now
            direction = "up" if decision.replicas > before.replicas else "down"
            deployment.changes[direction, decision.rule.value] += 1
            log.info(
                "%d → %d: %s", before.replicas, decision.replicas, decision.reason, extra={"key": str(key)}
            )
        if worth_publishing(deployment.latest, deployment.shown):
            deployment.shown = deployment.latest
            self._mark(key)

    def _resumed(
        self, td: TranslationDeployment, status: Mapping[str, Any], deployment: Manifest | None
    ) -> _Deployment:
        sized = resumed(td.spec, status, deployment)
        stored = status.get("scaling") or {}
        now = self._clock()
        memory = stored.get("state") if stored.get("mode") == "Internal" else None
        history, measured = decode(memory, now)
        before = stored.get("timeToReadySeconds")
        starts = Starts.from_fields(measured, before, max_start_s(td.spec), now)
        began = ScalingView(
            replicas=sized.replicas,
            rule=sized.rule,
            reason=sized.reason,
            at=now,
            source=self._sources.named(td),
            time_to_ready_s=starts.time_to_ready_s,
            history=history,
            starts=starts,
        )
        return _Deployment(td=td, shown=began, latest=began, requested_at_s=now, starts=starts)


def engine_addresses(pods: Iterable[Manifest]) -> dict[str, str]:
    """Addresses by uid of the pods that run, whether ready or not: one that drains may still hold requests."""
    return {
        pod["metadata"]["uid"]: address
        for pod in pods
        if (address := (pod.get("status") or {}).get("podIP"))
        and (pod.get("status") or {}).get("phase") == "Running"
    }
