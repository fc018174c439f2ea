"""Reconciliation: observe, plan, apply, one status write. It is stateless, except to save writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Any

from dragoman_kube.errors import ClusterError, RefusedError
from dragoman_kube.events import EventRecorder
from dragoman_kube.kinds import DEPLOYMENT, EVENT, POD, REPLICA_SET, SCALED_OBJECT, SECRET, Kind
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import Key, is_deleting, is_true, uid_of
from dragoman_operator.api.status import written_status
from dragoman_operator.api.v1alpha1 import TranslationDeployment, parse
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.view import ScalingView
from dragoman_operator.autoscaling.writes import SpecReplicas
from dragoman_operator.controller.changes import Changes
from dragoman_operator.errors import SpecError
from dragoman_operator.observed.diagnosis import is_waiting_for_volumes, mount_failures
from dragoman_operator.observed.scheduling import NODE_EVENTS, provisioned, without_node
from dragoman_operator.observed.snapshot import (
    CHILD_KINDS,
    KEDA_KINDS,
    TRANSLATION_DEPLOYMENT,
    Download,
    Manifest,
    Observed,
    is_child,
)
from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.plan import Change, Plan, ReconcileInput, plan
from dragoman_operator.rollout import time_left_s
from dragoman_operator.status.events import transitions
from dragoman_operator.status.render import status_of, status_of_bad_spec
from dragoman_operator.tuning.loop import Tuner

log = logging.getLogger(__name__)

SOON_S = 2.0
"""Time to the next reconciliation while a child is being deleted: the end of a deletion may cause no watch event."""
MOUNTING_S = 10.0
"""Time to the next reconciliation while a pod waits for its volumes: an Event does not enqueue its object."""
NODE_S = 10.0
"""The same while a pod has no node, for the events of a cluster autoscaler."""
KEDA_S = 15.0
"""Time to the next reconciliation while the ScaledObject is not ready: KEDA's kinds are not watched."""
REFUSED_S = 30.0
"""Time to the next reconciliation after a refused write: a quota or a policy may change."""
ROUNDING_S = 1.0
"""Resolution of times in the API."""


@dataclass(frozen=True)
class Environment:
    """What all reconciliations work with."""

    mirror: Mirror
    defaults: Defaults
    autoscaler: Autoscaler
    spec_replicas: SpecReplicas
    tuner: Tuner
    events: EventRecorder
    resync_s: float
    """Seconds to the next reconciliation without a change."""
    before_scale_down: Callable[[Iterable[Manifest]], Awaitable[None]] | None = None
    """Called with all pods of an object, so that the least busy are deleted first; None: Kubernetes chooses."""
    guard_starts: Callable[[Iterable[Manifest]], Awaitable[None]] | None = None
    """Called with all pods of an object, so that those that start are not moved."""
    mount_events: Callable[[], Iterable[Manifest]] = tuple
    """The kubelets' Events about volumes that cannot be mounted."""
    downloads: Callable[[], Mapping[str, Download]] = dict
    """Progress of pods that download the model, by the pod's uid."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Reconciler:
    """Reconciles children and status of a TranslationDeployment with its spec."""

    def __init__(self, environment: Environment) -> None:
        self._env = environment
        self._changes = Changes(environment.mirror)

    async def __call__(self, key: Key) -> float | None:
        """Reconcile one object.

        Returns:
            Seconds to the next reconciliation; None if the object was deleted.

        Raises:
            ClusterError: The API server failed; retry later.
        """
        body = self._env.mirror.get(TRANSLATION_DEPLOYMENT, key)
        if body is None or is_deleting(body):
            for part in (self._env.autoscaler, self._env.spec_replicas, self._env.tuner, self._changes):
                part.forget(key)
            return None
        observed = await self._observe(key, body)
        if self._env.guard_starts:
            await self._env.guard_starts(observed.pods)
        pause_s = self._env.resync_s
        try:
            td = parse(body)
            scaled = self._decision(td, observed)
            if scaled is not None:
                written, wait_s = await self._env.spec_replicas.write(body, td.spec.replicas, scaled.replicas)
                pause_s = min(pause_s, wait_s)
                if written is not None:
                    body = self._env.mirror.store(TRANSLATION_DEPLOYMENT, dict(written))
                    td = parse(body)
                    self._env.autoscaler.acknowledge(key, scaled.replicas)
                    scaled = self._decision(td, observed)
            given = ReconcileInput(td, observed, scaled, self._env.tuner.view(td, observed))
            planned = _without_untracked_keda(plan(given, self._env.defaults), observed.status)
        except SpecError as error:
            generation = body["metadata"].get("generation", 1)
            new = status_of_bad_spec(key, generation, str(error), observed)
        else:
            refusals = await self._carry_out(key, planned, observed)
            if _is_first(planned, observed, refusals):
                # The events of its children cause the next reconciliation, which writes its first status.
                return SOON_S
            new = status_of(given, planned, refusals)
            pause_s = min(pause_s, self._wait_s(key, planned, observed, refusals))
        if any(map(is_waiting_for_volumes, observed.pods)):
            pause_s = min(pause_s, MOUNTING_S)
        if without_node(observed.pods):
            pause_s = min(pause_s, NODE_S)
        if observed.keda and not is_true({"status": new}, "ScalingActive"):
            pause_s = min(pause_s, KEDA_S)
        if new != observed.status:
            await self._write_status(body, observed.status, new)
        return pause_s

    def _decision(self, td: TranslationDeployment, observed: Observed) -> ScalingView | None:
        deployment = observed.children.get(DEPLOYMENT)
        return self._env.autoscaler.view(td, observed.status, deployment, observed.replica_set_uids)

    async def _carry_out(self, key: Key, planned: Plan, observed: Observed) -> list[str]:
        """Make the changes; the refusals of the API server."""
        before_scale_down = self._env.before_scale_down
        if before_scale_down and any(_scales_down(each, observed) for each in planned.changes):
            await before_scale_down(observed.pods)
        return [
            refusal
            for change in planned.changes
            if (refusal := await self._changes.make(key, change, observed.children.get(change.kind)))
        ]

    def _wait_s(self, key: Key, planned: Plan, observed: Observed, refusals: list[str]) -> float:
        """Seconds to the next reconciliation, by what the plan could not change."""
        left_s = time_left_s(observed)
        wait_s = inf if left_s is None else left_s + ROUNDING_S
        no_secret = planned.creates(SECRET) and not self._changes.has_start_cache(key)
        if planned.waiting:
            return min(wait_s, SOON_S)
        if refusals or planned.obstacles or no_secret:
            return min(wait_s, REFUSED_S)
        return wait_s

    async def _write_status(self, body: Manifest, old: Mapping[str, Any], new: dict[str, Any]) -> None:
        await self._env.mirror.apply(TRANSLATION_DEPLOYMENT, _with_status(body, new), "status")
        for change in transitions(old, new):
            self._env.events.record(
                body, change.reason, change.message, warning=change.warning, now=self._env.now()
            )

    async def _observe(self, key: Key, body: Manifest) -> Observed:
        mirror, uid, status = self._env.mirror, uid_of(body), written_status(body)
        keda = await self._keda_children(key) if _mentions_keda(body) else None
        found: dict[Kind, Manifest] = {
            kind: child for kind in CHILD_KINDS if (child := mirror.get(kind, key))
        }
        found |= await self._unlabelled_children(key, found, is_new=not status)
        found |= keda or {}
        children: dict[Kind, Manifest] = {kind: each for kind, each in found.items() if is_child(each, uid)}
        deployments = [uid_of(children[DEPLOYMENT])] if DEPLOYMENT in children else []
        replica_sets = mirror.controlled(REPLICA_SET, key.namespace, deployments)
        pods = mirror.controlled(POD, key.namespace, map(uid_of, replica_sets))
        if (secret := self._changes.start_caches.get(key)) is not None:
            children[SECRET] = secret
        mounting = any(map(is_waiting_for_volumes, pods))
        return Observed(
            now=self._env.now(),
            children=children,
            foreign={kind: each for kind, each in found.items() if kind not in children},
            status=status,
            replica_sets=tuple(replica_sets),
            pods=tuple(pods),
            mount_failures=mount_failures(pods, self._env.mount_events()) if mounting else {},
            downloads=self._env.downloads(),
            provisioned=await self._provisioned(key, pods),
            keda=keda is not None,
            applied=dict(self._changes.applied.get(key, {})),
        )

    async def _provisioned(self, key: Key, pods: Iterable[Manifest]) -> frozenset[str]:
        """Uids of the pods for which a cluster autoscaler adds a node; without permission for events, none."""
        if not without_node(pods):
            return frozenset()
        client = self._env.mirror.client
        fields = [f"involvedObject.kind=Pod,reason={reason}" for reason in NODE_EVENTS]
        try:
            lists = [await client.list(EVENT, key.namespace, fields=each) for each in fields]
        except ClusterError as error:
            log.debug("%s", error, extra={"key": str(key)})
            return frozenset()
        return provisioned((event for found in lists for event in found.items), self._env.now())

    async def _read(self, key: Key, kinds: Iterable[Kind]) -> dict[Kind, Manifest]:
        """Existing children, read from the API server."""
        kinds = tuple(kinds)
        found = await asyncio.gather(*(self._env.mirror.client.get(kind, key) for kind in kinds))
        return {kind: child for kind, child in zip(kinds, found, strict=True) if child is not None}

    async def _unlabelled_children(
        self, key: Key, mirrored: Container[Kind], *, is_new: bool
    ) -> dict[Kind, Manifest]:
        """Children that are not in the mirror, because they lost our label or never had it.

        Pods are found through the Deployment: unless the object is new, it is read even if its label was just removed.
        The others are read once their creation was refused because they exist.
        """
        unlabelled = self._changes.unlabelled
        known = unlabelled.get(key, set()) | (set() if is_new else {DEPLOYMENT})
        found = await self._read(key, (kind for kind in known if kind not in mirrored))
        if still := unlabelled.pop(key, set()) & found.keys():
            unlabelled[key] = still
        return found

    async def _keda_children(self, key: Key) -> dict[Kind, Manifest] | None:
        """KEDA's children; None if KEDA is not installed, or may not be read: the chart grants it with keda.enabled."""
        try:
            served = await self._env.mirror.client.serves(SCALED_OBJECT)
            return await self._read(key, KEDA_KINDS) if served else None
        except RefusedError as error:
            log.warning("%s", error, extra={"key": str(key)})
            return None


def _mentions_keda(body: Manifest) -> bool:
    """Whether the mode is KEDA, or was when the status was written."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    modes = ((spec.get("autoscaling") or {}).get("mode"), (status.get("scaling") or {}).get("mode"))
    return "KEDA" in modes


def _without_untracked_keda(planned: Plan, old: Mapping[str, Any]) -> Plan:
    """The plan without KEDA's kinds until the status has the mode KEDA.

    They are read only then, and would not be deleted if the mode changed before. The write of the status causes the
    next reconciliation.
    """
    if (old.get("scaling") or {}).get("mode") == "KEDA":
        return planned
    return replace(planned, changes=tuple(c for c in planned.changes if c.kind not in KEDA_KINDS))


def _is_first(planned: Plan, observed: Observed, refusals: list[str]) -> bool:
    """Whether the object is new, and nothing prevents its children."""
    obstacles = refusals or planned.obstacles or planned.waiting
    return not (observed.status or planned.is_applied or obstacles)


def _scales_down(change: Change, observed: Observed) -> bool:
    """Whether the change reduces the pods of the Deployment, but not to zero."""
    found = observed.children.get(DEPLOYMENT)
    if change.kind is not DEPLOYMENT or change.manifest is None or found is None:
        return False
    return 0 < int(change.manifest["spec"]["replicas"]) < int(found["spec"].get("replicas") or 0)


def _with_status(seen: Manifest, status: Mapping[str, Any]) -> dict[str, Any]:
    """The status to apply; refused if the object has changed since it was observed."""
    kind, metadata = TRANSLATION_DEPLOYMENT, seen["metadata"]
    identity = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": identity, "status": status}
