"""The controllers: work queues over the Kubernetes API that carry the decisions out."""

from typing import Protocol

from dragoman_kube.objects import Key
from dragoman_kube.work_queue import WorkQueue


class Controller(Protocol):
    """Reconciles the objects of some kinds."""

    queue: WorkQueue[Key]

    def start(self) -> None:
        """Follow those kinds, so that their changes fill the queue."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object closer to what it should be; the seconds until it is reconciled again, or None."""
