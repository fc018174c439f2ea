"""An operator's reconciler and mirror over a cluster in memory, for the tests of the controller."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

from tests.support.deployments import DEFAULTS, KEY
from tests.support.fake_cluster import FakeCluster, Manifest

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.client import KubeClient
from dragoman_kube.events import EventRecorder
from dragoman_kube.kinds import DEPLOYMENT, POD, REPLICA_SET, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, owner_reference
from dragoman_operator.autoscaling.writes import SpecReplicas
from dragoman_operator.controller.reconcile import Environment, Reconciler
from dragoman_operator.controller.watches import feed, follow
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT

RESYNC_S = 300.0


class NoScaler:
    """Decides nothing."""

    def view(self, *seen: object) -> Any:
        return None

    def forget(self, key: Key) -> None:
        return None


class World:
    """A cluster, an operator's mirror of it, and its reconciler.

    Attributes:
        clock: Seconds of the operator's clock.
        enqueued: Keys that changes have enqueued.
        events: The Events that were recorded.
    """

    def __init__(
        self, *objects: Manifest, scaler: Any = None, resync_s: float = RESYNC_S, **more: Any
    ) -> None:
        self.cluster = FakeCluster(*objects)
        self.kube = cast(KubeClient, self.cluster)
        self.clock = 0.0
        self.enqueued: set[Key] = set()
        self.events: list[Manifest] = []
        self.mount_events: list[Manifest] = []
        self.mirror = Mirror(self.kube, resync_s=resync_s)
        follow(self.mirror, self.enqueued.add)
        self._scaler: Any = scaler or NoScaler()
        self._more = more
        self._kopf = asyncio.create_task(self._feed())
        self.reconcile = self.restarted()

    async def _feed(self) -> None:
        """Watch the TranslationDeployments, as kopf does."""
        while True:
            async for event in self.cluster.watch(TRANSLATION_DEPLOYMENT, "", "0"):
                feed(self.mirror, event["type"], event["object"])

    def kopf_lists(self) -> None:
        """kopf lists again, as after its watch has expired."""
        for (kind, _), found in self.cluster.objects.items():
            if kind == TRANSLATION_DEPLOYMENT.name:
                feed(self.mirror, None, found)

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait for a condition with a deadline."""
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110 - what is waited for sets no event
                await asyncio.sleep(0.005)

    def restarted(self) -> Reconciler:
        """A reconciler without memory."""
        environment = Environment(
            mirror=self.mirror,
            defaults=DEFAULTS,
            autoscaler=self._scaler,
            spec_replicas=SpecReplicas(self.kube, lambda: self.clock),
            tuner=cast(Any, NoScaler()),
            events=EventRecorder(cast(Any, self), "dragoman-operator", "me"),
            resync_s=RESYNC_S,
            mount_events=lambda: self.mount_events,
            now=lambda: self.cluster.now,
            **self._more,
        )
        self.reconcile = Reconciler(environment)
        return self.reconcile

    def put(self, event: Manifest) -> None:
        """Record an Event; the writer of the recorder."""
        self.events.append(event)

    async def reconciled(self, times: int = 1) -> float | None:
        """Let the watches deliver, and reconcile; the seconds to the next reconciliation."""
        pause_s = None
        for _ in range(times):
            await self.cluster.settle()
            pause_s = await self.reconcile(KEY)
        return pause_s

    async def written(self) -> list[str]:
        """The writes of the next reconciliation."""
        self.cluster.calls.clear()
        await self.reconciled()
        return list(self.cluster.calls)

    def edit(self, kind: Kind, change: Callable[[Manifest], None], **more: Any) -> Manifest:
        """Change the object, or its child of this kind, as another client does."""
        return self.cluster.edit(kind, KEY, change, **more)

    def found(self, kind: Kind) -> Manifest:
        """The stored child of this kind."""
        return self.cluster.found(kind, KEY)

    @property
    def td(self) -> Manifest:
        """The stored object."""
        return self.cluster.found(TRANSLATION_DEPLOYMENT, KEY)

    def condition(self, kind: str) -> Manifest:
        """The stored condition of this type."""
        (found,) = (each for each in self.td["status"]["conditions"] if each["type"] == kind)
        return cast(Manifest, found)

    def add_replica_set(self, name: str = "rs", owner: Manifest | None = None) -> Manifest:
        """Store a ReplicaSet of the object's Deployment, or of another owner."""
        return self.cluster.put(owned(REPLICA_SET, name, owner or self.found(DEPLOYMENT), spec={}))

    def add_pod(self, name: str, owner: Manifest | None, **fields: Any) -> Manifest:
        """Store a pod of a ReplicaSet, or of nothing."""
        return self.cluster.put(owned(POD, name, owner, **fields))

    async def aclose(self) -> None:
        """End the watches."""
        self._kopf.cancel()
        await asyncio.gather(self._kopf, return_exceptions=True)
        await self.mirror.aclose()


def owned(kind: Kind, name: str, owner: Manifest | None, **fields: Any) -> Manifest:
    """An object with the label of the TranslationDeployment `KEY`."""
    metadata: Manifest = {"name": name, "namespace": KEY.namespace, "labels": {LABEL_DEPLOYMENT: KEY.name}}
    if owner is not None:
        metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}
