"""ReplicaSets: creates and deletes pods until there are as many as desired."""

from __future__ import annotations

from datetime import UTC, datetime

from dragoman_devcluster.controllers.queue import work_queue
from dragoman_devcluster.decisions.replicas import (
    available_in_s,
    is_active,
    new_pod,
    plan_replicas,
    replica_set_status,
)
from dragoman_devcluster.decisions.rollout import desired_of, name_of
from dragoman_devcluster.mirror import Mirror
from dragoman_devcluster.status_changes import differs
from dragoman_kube.errors import ClusterError, UnavailableError
from dragoman_kube.events import EventRecorder, EventWriter
from dragoman_kube.kinds import POD, REPLICA_SET
from dragoman_kube.objects import (
    Key,
    Manifest,
    condition_of,
    controller_of,
    is_controlled_by,
    is_deleting,
    key_of,
)
from dragoman_kube.times import timestamp

CREATE_RETRY_S = 5.0


class ReplicaSetController:
    """Keeps every ReplicaSet's pods at their number.

    Args:
        mirror: The cluster's objects.
        events: Where to report.
    """

    def __init__(self, mirror: Mirror, events: EventWriter) -> None:
        self._mirror = mirror
        self._events = EventRecorder(events, "replicaset-controller")
        self.queue = work_queue("replicaset")

    def start(self) -> None:
        """Follow the kinds that concern ReplicaSets."""
        self._mirror.follow(REPLICA_SET, lambda _, new: self.queue.add(key_of(new)) if new else None)
        self._mirror.follow(POD, self._enqueue_owner)

    async def reconcile(self, key: Key) -> float | None:
        """Create or delete pods of one ReplicaSet, and report its status."""
        replica_set = self._mirror.get(REPLICA_SET, key)
        if replica_set is None or is_deleting(replica_set):
            return None
        plan = plan_replicas(desired_of(replica_set), self._pods(replica_set), datetime.now(UTC))
        for pod in plan.delete:
            await self._mirror.delete(POD, pod)
            self._events.record(replica_set, "SuccessfulDelete", f"Deleted pod: {name_of(pod)}")
        failure: ClusterError | None = None
        try:
            for _ in range(plan.create):
                pod = await self._mirror.create(POD, new_pod(replica_set))
                self._events.record(replica_set, "SuccessfulCreate", f"Created pod: {name_of(pod)}")
        except UnavailableError:
            raise
        except ClusterError as error:
            failure = error
            self._events.record(replica_set, "FailedCreate", f"Error creating: {error}", warning=True)
        return await self._report(replica_set, failure)

    async def _report(self, replica_set: Manifest, failure: ClusterError | None) -> float | None:
        key = key_of(replica_set)
        latest = self._mirror.get(REPLICA_SET, key)
        if latest is None:
            return None
        now = datetime.now(UTC)
        pods = self._pods(latest)
        status = replica_set_status(latest, pods, now)
        status["conditions"] = _conditions(latest, failure, now)
        if differs(latest, status):
            await self._mirror.merge(REPLICA_SET, key, {"status": status}, "status")
        if failure is not None:
            return CREATE_RETRY_S
        min_ready_s = latest["spec"].get("minReadySeconds") or 0
        due = [available_in_s(pod, min_ready_s, now) for pod in pods if is_active(pod)]
        return min((seconds for seconds in due if seconds), default=None)

    def _pods(self, replica_set: Manifest) -> list[Manifest]:
        found = self._mirror.list(POD, key_of(replica_set)[0])
        return [pod for pod in found if is_controlled_by(pod, replica_set)]

    def _enqueue_owner(self, old: Manifest | None, new: Manifest | None) -> None:
        pod = new or old
        owner = controller_of(pod) if pod else None
        if pod and owner and owner["kind"] == "ReplicaSet":
            self.queue.add(Key(key_of(pod).namespace, owner["name"]))


def _conditions(replica_set: Manifest, failure: ClusterError | None, now: datetime) -> list[Manifest]:
    if failure is None:
        return []
    before = condition_of(replica_set, "ReplicaFailure")
    return [
        {
            "type": "ReplicaFailure",
            "status": "True",
            "reason": "FailedCreate",
            "message": failure.reason,
            "lastTransitionTime": before["lastTransitionTime"] if before else timestamp(now),
        }
    ]
