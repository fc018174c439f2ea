"""PodDisruptionBudgets: keeps their status."""

from __future__ import annotations

from datetime import UTC, datetime

from dragoman_devcluster.controllers.queue import work_queue
from dragoman_devcluster.decisions.disruption import EVICTION_LASTS_S, Scale, disruption_status
from dragoman_devcluster.decisions.rollout import desired_of
from dragoman_devcluster.mirror import Mirror
from dragoman_devcluster.status_changes import differs
from dragoman_kube.kinds import DEPLOYMENT, DISRUPTION_BUDGET, POD, REPLICA_SET
from dragoman_kube.objects import Key, Manifest, controller_of, key_of, selects, uid_of


class DisruptionController:
    """Keeps every PodDisruptionBudget's status.

    Args:
        mirror: The cluster's objects.
    """

    def __init__(self, mirror: Mirror) -> None:
        self._mirror = mirror
        self.queue = work_queue("disruption")

    def start(self) -> None:
        """Follow budgets, and the pods and scales that they count."""
        self._mirror.follow(DISRUPTION_BUDGET, lambda _, new: self.queue.add(key_of(new)) if new else None)
        for kind in (POD, REPLICA_SET, DEPLOYMENT):
            self._mirror.follow(kind, self._changed)

    async def reconcile(self, key: Key) -> float | None:
        """Update one budget's status."""
        budget = self._mirror.get(DISRUPTION_BUDGET, key)
        if budget is None:
            return None
        selector = budget["spec"].get("selector")
        pods = [
            pod
            for pod in self._mirror.list(POD, key[0])
            if selects(selector, pod["metadata"].get("labels") or {})
        ]
        status = disruption_status(budget, pods, self._scales(key[0]), datetime.now(UTC))
        if differs(budget, status):
            # A merge patch removes what it names as null; evictions that are over have to go.
            past = (budget.get("status") or {}).get("disruptedPods") or {}
            status["disruptedPods"] = {**dict.fromkeys(past), **status["disruptedPods"]}
            await self._mirror.merge(DISRUPTION_BUDGET, key, {"status": status}, "status")
        return EVICTION_LASTS_S if any(status["disruptedPods"].values()) else None

    def _scales(self, namespace: str) -> dict[str, Scale]:
        deployments = {uid_of(item): desired_of(item) for item in self._mirror.list(DEPLOYMENT, namespace)}
        scales: dict[str, Scale] = {}
        for replica_set in self._mirror.list(REPLICA_SET, namespace):
            uid, owner = uid_of(replica_set), controller_of(replica_set)
            if owner is not None and owner["uid"] in deployments:
                scales[uid] = owner["uid"], deployments[owner["uid"]]
            else:
                scales[uid] = uid, desired_of(replica_set)
        return scales

    def _changed(self, old: Manifest | None, new: Manifest | None) -> None:
        changed = new or old
        if changed is not None:
            for budget in self._mirror.list(DISRUPTION_BUDGET, key_of(changed)[0]):
                self.queue.add(key_of(budget))
