"""Deployments: carries out rollout plans and reports their status."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from dragoman_devcluster.controllers.controller import enqueue_owner, work_queue
from dragoman_devcluster.controllers.deployment_status import deadline_in_s, deployment_status
from dragoman_devcluster.controllers.rollout import (
    REVISION,
    current_replica_set,
    desired_of,
    name_of,
    plan_rollout,
    unsupported,
)
from dragoman_kube.errors import ConflictError
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import DEPLOYMENT, REPLICA_SET
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import (
    Key,
    Manifest,
    annotations_of,
    differs,
    is_deleting,
    key_of,
    uid_of,
)

logger = logging.getLogger(__name__)


class DeploymentController:
    """Reconciles Deployments: their ReplicaSets and their status."""

    def __init__(self, mirror: Mirror, events: EventWriter) -> None:
        self._mirror = mirror
        self._events = EventRecorder(events, "deployment-controller")
        self.queue = work_queue("deployment")

    def start(self) -> None:
        """Follow the kinds that concern Deployments."""
        self._mirror.follow(DEPLOYMENT, lambda _, new: self.queue.add(key_of(new)) if new else None)
        self._mirror.follow(REPLICA_SET, enqueue_owner(self.queue, DEPLOYMENT))

    async def reconcile(self, key: Key) -> float | None:
        """Take the next step of one Deployment's rollout."""
        deployment = self._mirror.get(DEPLOYMENT, key)
        if deployment is None or is_deleting(deployment):
            return None
        if why := unsupported(deployment):
            self._events.record(deployment, "Unsupported", why, warning=True)
            return None
        owned = self._owned(deployment)
        plan = plan_rollout(deployment, owned)
        if plan.create is not None:
            await self._create(deployment, plan.create)
        current = current_replica_set(deployment, owned)
        if plan.change is not None and current is not None:
            await self._mirror.merge(REPLICA_SET, key_of(current), plan.change)
        for replica_set in owned:
            if (size := plan.scale.get(name_of(replica_set))) is not None:
                await self._scale(deployment, replica_set, size)
            elif name_of(replica_set) in plan.remove:
                await self._mirror.delete(REPLICA_SET, replica_set)
        return await self._report(key)

    async def _create(self, deployment: Manifest, replica_set: Manifest) -> None:
        try:
            await self._mirror.create(REPLICA_SET, replica_set)
        except ConflictError as error:
            message = f'Failed to create new replica set "{name_of(replica_set)}": {error.reason}'
            self._events.record(deployment, "ReplicaSetCreateError", message, warning=True)
            raise
        message = f"Scaled up replica set {name_of(replica_set)} from 0 to {desired_of(replica_set)}"
        self._events.record(deployment, "ScalingReplicaSet", message)

    async def _scale(self, deployment: Manifest, replica_set: Manifest, size: int) -> None:
        before = desired_of(replica_set)
        await self._mirror.merge(REPLICA_SET, key_of(replica_set), {"spec": {"replicas": size}})
        direction = "up" if size > before else "down"
        message = f"Scaled {direction} replica set {name_of(replica_set)} from {before} to {size}"
        self._events.record(deployment, "ScalingReplicaSet", message)

    async def _report(self, key: Key) -> float | None:
        deployment = self._mirror.get(DEPLOYMENT, key)
        if deployment is None:
            return None
        owned = self._owned(deployment)
        current = current_replica_set(deployment, owned)
        revision = annotations_of(current).get(REVISION) if current else None
        if revision is not None and annotations_of(deployment).get(REVISION) != revision:
            annotate = {"metadata": {"annotations": {REVISION: revision}}}
            deployment = await self._mirror.merge(DEPLOYMENT, key, annotate)
        now = datetime.now(UTC)
        status = deployment_status(deployment, owned, now)
        if differs(deployment, status):
            await self._mirror.merge(DEPLOYMENT, key, {"status": status}, "status")
        due_s = deadline_in_s(deployment, status, now)
        return None if due_s is None else due_s + 1

    def _owned(self, deployment: Manifest) -> list[Manifest]:
        return list(self._mirror.controlled(REPLICA_SET, key_of(deployment).namespace, [uid_of(deployment)]))
