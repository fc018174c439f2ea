"""What every controller is: a work queue, and a step that brings one object closer to what it should be."""

from __future__ import annotations

from typing import Protocol

from dragoman_devcluster.errors import LocalClusterError
from dragoman_kube.collection import Listener
from dragoman_kube.errors import ClusterError, ConflictError, NotFoundError, UnavailableError
from dragoman_kube.kinds import Kind
from dragoman_kube.objects import Key, Manifest, controller_of, key_of
from dragoman_kube.work_queue import Backoff, WorkQueue


class Controller(Protocol):
    """Reconciles the objects of some kinds."""

    queue: WorkQueue[Key]

    def start(self) -> None:
        """Follow those kinds, so that their changes fill the queue."""

    async def reconcile(self, key: Key) -> float | None:
        """Bring one object closer to what it should be; the seconds until it is reconciled again, or None."""


def work_queue(name: str) -> WorkQueue[Key]:
    """A queue with one worker; failures that are usual in a cluster are logged at level debug."""
    return WorkQueue(
        name=name,
        settle_s=0.0,
        backoff=Backoff(0.1, 10.0),
        expected=(ClusterError, LocalClusterError),
        quiet=(ConflictError, NotFoundError, UnavailableError),
    )


def enqueue_owner(queue: WorkQueue[Key], kind: Kind) -> Listener:
    """A listener that enqueues the controller of an object that has changed, if it is of this kind."""

    def changed(old: Manifest | None, new: Manifest | None) -> None:
        manifest = new or old or {}
        owner = controller_of(manifest)
        if owner is not None and owner["kind"] == kind.name:
            queue.add(Key(key_of(manifest).namespace, owner["name"]))

    return changed
