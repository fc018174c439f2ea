"""Reconciliation: observe, plan, apply, one status write. It is stateless, except to save writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Container, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dragoman_contract.kubernetes import FIELD_MANAGER
from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, RefusedError
from dragoman_kube.events import EventRecorder
from dragoman_kube.kinds import DEPLOYMENT, SCALED_OBJECT, Kind
from dragoman_kube.objects import Key, as_applied, is_deleting, is_true
from dragoman_operator.api.v1alpha1 import TranslationDeployment, parse
from dragoman_operator.autoscaling.loop import Autoscaler
from dragoman_operator.autoscaling.writes import SpecReplicas
from dragoman_operator.controller.cache import Cache
from dragoman_operator.controller.start_cache import StartCacheSecrets
from dragoman_operator.errors import SpecError
from dragoman_operator.observed.diagnosis import is_waiting_for_volumes, mount_failures
from dragoman_operator.observed.drift import Applied
from dragoman_operator.observed.snapshot import (
    CHILD_KINDS,
    KEDA_KINDS,
    TRANSLATION_DEPLOYMENT,
    Download,
    Manifest,
    Observed,
    is_child,
    own_pods,
    own_replica_sets,
)
from dragoman_operator.resources.children import Defaults
from dragoman_operator.resources.plan import Change, Plan, ReconcileInput, is_in_sync, plan
from dragoman_operator.rollout import time_left_s
from dragoman_operator.status.events import transitions
from dragoman_operator.status.render import status_of, status_of_bad_spec
from dragoman_operator.tuning.loop import Tuner

log = logging.getLogger(__name__)

SOON_S = 2.0
"""Time to the next reconciliation while a child is being deleted: the end of a deletion may cause no watch event."""
MOUNTING_S = 10.0
"""Time to the next reconciliation while a pod waits for its volumes: an Event does not enqueue its object."""
KEDA_S = 15.0
"""Time to the next reconciliation while the ScaledObject is not ready: KEDA's kinds are not watched."""
REFUSED_S = 30.0
"""Time to the next reconciliation after a refused write: a quota or a policy may change."""
ROUNDING_S = 1.0
"""Resolution of times in the API."""


class Reconciler:
    """Reconciles children and status of a TranslationDeployment with its spec.

    Args:
        before_scale_down: Called with all pods of an object, so that the least busy are deleted first; None: the order
            is that of Kubernetes.
        mount_events: The kubelets' Events about volumes that cannot be mounted.
        downloads: Progress of pods that download the model, by the pod's uid.
        resync_s: Seconds to the next reconciliation without a change.
    """

    def __init__(
        self,
        kube: KubeClient,
        cache: Cache,
        defaults: Defaults,
        scaler: Autoscaler,
        spec_replicas: SpecReplicas,
        sizer: Tuner,
        before_scale_down: Callable[[Iterable[Manifest]], Awaitable[None]] | None,
        events: EventRecorder,
        mount_events: Callable[[], Iterable[Manifest]],
        downloads: Callable[[], Mapping[str, Download]],
        resync_s: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._kube = kube
        self._cache = cache
        self._defaults = defaults
        self._scaler = scaler
        self._spec_replicas = spec_replicas
        self._sizer = sizer
        self._before_scale_down = before_scale_down
        self._events = events
        self._mount_events = mount_events
        self._downloads = downloads
        self._resync_s = resync_s
        self._now = now
        self._start_cache = StartCacheSecrets(kube, cache)
        self._applied: dict[Key, dict[Kind, Applied]] = {}
        """Lost in a restart, which then writes each of them once more."""
        self._unlabelled: dict[Key, set[Kind]] = {}
        """Children that exist without our label, so that the cache does not have them."""

    async def __call__(self, key: Key) -> float | None:
        """Reconcile one object.

        Returns:
            Seconds to the next reconciliation; None if the object was deleted.

        Raises:
            ClusterError: The API server failed; retry later.
        """
        body = self._cache.get(TRANSLATION_DEPLOYMENT, key)
        if body is None or is_deleting(body):
            self._scaler.forget(key)
            self._spec_replicas.forget(key)
            self._sizer.forget(key)
            self._start_cache.forget(key)
            self._applied.pop(key, None)
            self._unlabelled.pop(key, None)
            return None
        observed = await self._observe(key, body)
        old = observed.status
        pause_s = self._resync_s
        try:
            td = parse(body)
            tuned = self._sizer.view(td, observed)
            scaled = self._scaler.view(td, old, observed.children.get(DEPLOYMENT), observed.replica_set_uids)
            if scaled is not None:
                replicas = scaled.replicas
                written, pause_s = await self._spec_replicas.write(body, td.spec.replicas, replicas)
                if written is not None:
                    self._cache.learn(TRANSLATION_DEPLOYMENT, written)
                    self._scaler.acknowledge(key, replicas)
                    return await self(key)
                pause_s = min(pause_s, self._resync_s)
            given = ReconcileInput(td, observed, scaled, tuned)
            planned = _without_untracked_keda(plan(given, self._defaults), old)
        except SpecError as error:
            generation = body["metadata"].get("generation", 1)
            new = status_of_bad_spec(key, generation, str(error), observed)
        else:
            if self._before_scale_down and any(_scales_down(each, observed) for each in planned.changes):
                await self._before_scale_down(observed.pods)
            refusals = [
                refusal
                for change in planned.changes
                if (refusal := await self._carry_out(change, td, observed.children.get(change.kind)))
            ]
            if not old and planned.changes and not (refusals or planned.obstacles or planned.waiting):
                # The events of its children cause the next reconciliation, which writes its first status.
                return SOON_S
            new = status_of(given, planned, refusals)
            if planned.waiting:
                pause_s = min(pause_s, SOON_S)
            elif refusals or planned.obstacles:
                pause_s = min(pause_s, REFUSED_S)
            if (left_s := time_left_s(observed)) is not None:
                pause_s = min(pause_s, left_s + ROUNDING_S)
        if any(map(is_waiting_for_volumes, observed.pods)):
            pause_s = min(pause_s, MOUNTING_S)
        if observed.keda and not is_true({"status": new}, "ScalingActive"):
            pause_s = min(pause_s, KEDA_S)
        if new != old:
            written = await self._kube.apply(TRANSLATION_DEPLOYMENT, _with_status(body, new), "status")
            self._cache.learn(TRANSLATION_DEPLOYMENT, written)
            for change in transitions(old, new):
                self._events.record(
                    body, change.reason, change.message, warning=change.warning, now=self._now()
                )
        return pause_s

    async def _observe(self, key: Key, body: Mapping[str, Any]) -> Observed:
        keda = await self._keda_children(key) if _mentions_keda(body) else None
        children = {kind: child for kind in CHILD_KINDS if (child := self._cache.get(kind, key))}
        children |= await self._unlabelled_children(key, children, is_new=not body.get("status"))
        children |= keda or {}
        uid = body["metadata"]["uid"]
        own_children = {kind: child for kind, child in children.items() if is_child(child, uid)}
        own = own_replica_sets(own_children.get(DEPLOYMENT), self._cache.replica_sets(key))
        seen = Observed(
            now=self._now(),
            children=own_children,
            foreign={kind: child for kind, child in children.items() if kind not in own_children},
            status=body.get("status") or {},
            replica_sets=tuple(own),
            keda=keda is not None,
            applied=dict(self._applied.get(key, {})),
        )
        pods = own_pods(self._cache.pods(key), seen.replica_set_uids)
        seen = replace(seen, pods=tuple(pods), downloads=self._downloads())
        if any(map(is_waiting_for_volumes, pods)):
            seen = replace(seen, mount_failures=mount_failures(pods, self._mount_events()))
        return seen

    async def _read(self, key: Key, kinds: Iterable[Kind]) -> dict[Kind, Manifest]:
        """Existing children, read from the API server."""
        kinds = tuple(kinds)
        found = await asyncio.gather(*(self._kube.get(kind, key) for kind in kinds))
        return {kind: child for kind, child in zip(kinds, found, strict=True) if child is not None}

    async def _unlabelled_children(
        self, key: Key, cached: Container[Kind], *, is_new: bool
    ) -> dict[Kind, Manifest]:
        """Children that are not in the cache, because they lost our label or never had it.

        Pods are found through the Deployment: unless the object is new, it is read even if its label was just removed.
        The others are read once their creation was refused because they exist.
        """
        known = self._unlabelled.get(key, set()) | (set() if is_new else {DEPLOYMENT})
        found = await self._read(key, (kind for kind in known if kind not in cached))
        if still := self._unlabelled.pop(key, set()) & found.keys():
            self._unlabelled[key] = still
        return found

    async def _keda_children(self, key: Key) -> dict[Kind, Manifest] | None:
        """KEDA's children; None if KEDA is not installed, or may not be read: the chart grants it with keda.enabled."""
        try:
            return await self._read(key, KEDA_KINDS) if await self._kube.serves(SCALED_OBJECT) else None
        except RefusedError as error:
            log.warning("%s", error, extra={"key": str(key)})
            return None

    async def _carry_out(
        self, change: Change, td: TranslationDeployment, found: Manifest | None
    ) -> str | None:
        """Make one change; a refusal of the API server is returned, so that the other changes are still made.

        Args:
            change: The change.
            td: The object.
            found: The child as observed; without one it is created. An apply would take over an object of another
                owner that has its name.

        Raises:
            ConflictError: The child exists; the next reconciliation reads it.
        """
        kind, key, verb = change.kind, Key(td.namespace, td.name), "deleted"
        if kind is DEPLOYMENT:
            await self._start_cache.ensure(td)
        try:
            if change.manifest is None:
                await self._kube.delete(kind, key, change.uid or "")
            elif found is None:
                verb = "created"
                self._learn(key, kind, change.manifest, await self._kube.create(kind, change.manifest))
            else:
                verb = await self._apply(key, kind, found, change)
        except ConflictError:
            if found is None:
                self._unlabelled.setdefault(key, set()).add(kind)
            raise
        except RefusedError as error:
            log.warning("%s", error, extra={"key": str(key)})
            return str(error)
        log.info("%s %s: %s", verb, kind.name, change.cause, extra={"key": str(key)})
        return None

    async def _apply(self, key: Key, kind: Kind, found: Manifest, change: Change) -> str:
        verb, made, manifest, forced = "applied", None, change.manifest or {}, change.forced
        if as_applied(found, FIELD_MANAGER) is not None:
            # The cache has no fields in it.
            live = await self._kube.get(kind, key)
            if live is not None and (entries := as_applied(live, FIELD_MANAGER)) is not None:
                version = live["metadata"]["resourceVersion"]
                await self._kube.merge(
                    kind, key, {"metadata": {"resourceVersion": version, "managedFields": entries}}
                )
        try:
            made = await self._kube.apply(kind, manifest)
        except RefusedError:
            if forced is None:
                raise
        if forced is not None and not (made and is_in_sync(made, manifest)):
            verb, made = "forced", await self._kube.merge(kind, key, forced)
        self._learn(key, kind, manifest, made)
        return verb

    def _learn(self, key: Key, kind: Kind, manifest: dict[str, Any], made: Manifest | None) -> None:
        """Store the response to a write, and whether a webhook changed what was written."""
        if made:
            self._cache.learn(kind, made)
        applied = self._applied.setdefault(key, {})
        applied.pop(kind, None)
        if made and not is_in_sync(made, manifest):
            applied[kind] = Applied(manifest, made)


def _mentions_keda(body: Mapping[str, Any]) -> bool:
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
