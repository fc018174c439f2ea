"""The loops that carry the decisions out over the Kubernetes API."""

from typing import Protocol

from dragoman_devcluster.kube.queue import Reconciler


class Controller(Protocol):
    """A loop over the objects of some kinds."""

    queue: Reconciler

    def start(self) -> None:
        """Follow those kinds, so that their changes fill the queue."""
