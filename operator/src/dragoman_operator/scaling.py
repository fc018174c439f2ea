"""The autoscaler at work: at every tick it reads, decides, and has changed what has to change.

What is decided is the pure function `recommend`; who carries it out is the reconciler, which asks `view`. History
is kept here and written to the status with the decision, so that the next operator goes on where this one stopped.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dragoman_contract.kubernetes import (
    ENGINE_COMPONENT,
    LABEL_COMPONENT,
    LABEL_PART_OF,
    PART_OF,
    ROUTER_COMPONENT,
)
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.core.autoscale import History, recommend
from dragoman_operator.core.autoscale.observe import STALE_TICKS
from dragoman_operator.core.engine_pods import EnginePod, Starts, engine_pods, samples_of
from dragoman_operator.core.observed import POD, Key, Manifest
from dragoman_operator.core.replicas import mode_of, resumed
from dragoman_operator.core.router_load import TotalLoad
from dragoman_operator.core.scaled import Scaled, metrics_seen, policy_of, unpack, worth_publishing
from dragoman_operator.errors import ClusterError
from dragoman_operator.kube import Kube
from dragoman_operator.metric_sources import MetricSources
from dragoman_operator.sources import Heard, Routers

log = logging.getLogger(__name__)

ENGINES = {LABEL_PART_OF: PART_OF, LABEL_COMPONENT: ENGINE_COMPONENT}
ROUTERS = {LABEL_PART_OF: PART_OF, LABEL_COMPONENT: ROUTER_COMPONENT}


@dataclass
class _Deployment:
    """One object that is scaled by load."""

    td: TranslationDeployment
    shown: Scaled
    """What the status says, or is about to."""
    latest: Scaled
    asked_s: float
    """When the number of replicas last changed."""
    starts: Starts = field(default_factory=Starts)
    interval_s: float = 0.0
    failure: str | None = None
    failing_since: float | None = None


class Autoscaler:
    """Decides for all objects in mode Internal.

    Args:
        kube: The API server.
        sources: Where metrics come from.
        routers: Where held requests are told.
        mark: Has the reconciler look at an object.
        namespaces: Those that are served; empty is all.
        router_namespace: Where routers are trusted: whoever can make pods there can have replicas made.
        tick_s: Seconds between two decisions.
        on_change: Told of each change of a number of replicas, with the one before it.
        clock: Unix seconds.
    """

    def __init__(
        self,
        kube: Kube,
        sources: MetricSources,
        routers: Routers,
        mark: Callable[[Key], None],
        namespaces: Sequence[str],
        router_namespace: str,
        tick_s: float,
        on_change: Callable[[Key, int, Scaled], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._kube = kube
        self._sources = sources
        self._routers = routers
        self._mark = mark
        self._namespaces = namespaces
        self._router_namespace = router_namespace
        self._tick_s = tick_s
        self._on_change = on_change
        self._clock = clock
        self._deployments: dict[Key, _Deployment] = {}
        self._delegated: set[Key] = set()
        self.last_tick_s = 0.0

    def view(
        self, td: TranslationDeployment, status: Mapping[str, Any], deployment: Manifest | None
    ) -> Scaled | None:
        """What there is to say of one object; None where it is not ours to decide. Remembers the object.

        Args:
            td: The object as it is now.
            status: Its status as stored, for the start.
            deployment: Its Deployment, where there is one.
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
        known.td = td
        return known.shown

    def forget(self, key: Key) -> None:
        """The object is gone, or somebody else's to scale."""
        self._deployments.pop(key, None)
        self._delegated.discard(key)

    def wake(self, key: Key) -> None:
        """Decide at once where a router holds requests and there are no replicas."""
        deployment = self._deployments.get(key)
        if deployment is not None and deployment.latest.replicas == 0:
            self._decide(key, deployment, [], Heard(failure=deployment.failure))

    def latest(self) -> dict[Key, Scaled]:
        """The last decision of each object, for the metrics."""
        return {key: deployment.latest for key, deployment in self._deployments.items()}

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
                except ClusterError as error:
                    log.warning("no decision: %s", error)
                except Exception:
                    log.exception("unexpected failure of a tick")
                self.last_tick_s = loop.time() - began
                await asyncio.sleep(max(0.0, self._tick_s - self.last_tick_s))
        finally:
            await self._routers.aclose()

    async def tick(self) -> None:
        """Look at every object once: each decides as soon as its own pods have answered.

        Raises:
            ClusterError: The API server does not say which pods there are.
        """
        routers = engine_addresses(await self._kube.select(POD, self._router_namespace, ROUTERS))
        self._routers.follow(routers)
        if not self._deployments:
            self._sources.begin((), ())
            return
        found = await asyncio.gather(
            *(self._kube.select(POD, namespace, ENGINES) for namespace in self._namespaces or (None,))
        )
        by_key: dict[Key, list[EnginePod]] = {}
        uids = set()
        for pod in engine_pods(pod for pods in found for pod in pods):
            by_key.setdefault(pod.key, []).append(pod)
            uids.add(pod.uid)
        self._sources.begin(self._deployments, uids)
        # In another order each time: where not all can be read in time, it is not always the same ones.
        deployments = random.sample(list(self._deployments.items()), len(self._deployments))
        await asyncio.gather(*(self._look(*each, by_key.get(each[0], [])) for each in deployments))

    async def _look(self, key: Key, deployment: _Deployment, pods: list[EnginePod]) -> None:
        deployment.starts = deployment.starts.seen(pods)
        try:
            heard = await self._sources.read(deployment.td, pods)
            if self._deployments.get(key) is deployment:
                self._decide(key, deployment, pods, heard)
        except Exception:
            # One object's trouble is no other's.
            log.exception("unexpected failure of a decision", extra={"key": str(key)})

    def _decide(self, key: Key, deployment: _Deployment, pods: list[EnginePod], heard: Heard) -> None:
        before = deployment.latest
        now = max(self._clock(), before.at)
        load = self._routers.load(key)
        deployment.interval_s = heard.interval_s or deployment.interval_s
        policy = policy_of(deployment.td.spec, self._tick_s, deployment.interval_s)
        samples = samples_of(
            before.replicas,
            deployment.asked_s,
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
        deployment.latest = Scaled(
            replicas=decision.replicas,
            rule=decision.rule.value,
            reason=decision.reason,
            at=now,
            source=self._sources.named(deployment.td),
            metrics=metrics_seen(pods, decision, heard.problems, heard.failure, failing),
            signals=decision.signals,
            load=load,
            ready=samples.ready,
            time_to_ready_s=samples.time_to_ready_s,
            history=decision.history,
        )
        if decision.replicas != before.replicas:
            deployment.asked_s = now
            self._on_change(key, before.replicas, deployment.latest)
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
        history = unpack(stored.get("memory")) if stored.get("mode") == "Internal" else History()
        before = stored.get("timeToReadySeconds")
        starts = Starts(before=float(before) if before is not None else None)
        now = self._clock()
        began = Scaled(
            replicas=sized.replicas,
            rule=sized.rule,
            reason=sized.reason,
            at=now,
            source=self._sources.named(td),
            time_to_ready_s=starts.time_to_ready_s,
            history=history,
        )
        return _Deployment(td=td, shown=began, latest=began, asked_s=now, starts=starts)


def engine_addresses(pods: Sequence[Manifest]) -> dict[str, str]:
    """Addresses by uid of the pods that run, whether ready or not: one that drains may still hold requests."""
    return {
        pod["metadata"]["uid"]: address
        for pod in pods
        if (address := (pod.get("status") or {}).get("podIP"))
        and (pod.get("status") or {}).get("phase") == "Running"
    }
