"""All deployments, with what they serve.

A source applies its changes one deployment at a time; requests see them with their next choice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from dragoman_router.fleet.backend import Backend, ReplicaEndpoint
from dragoman_router.fleet.queue import QueueLimits
from dragoman_router.fleet.status import Status
from dragoman_router.routing.deployments import Deployment, Replica
from dragoman_router.routing.placement import Catalogue


def _ignore(backend: Backend, endpoint: ReplicaEndpoint) -> None:
    """No listener."""


class Fleet:
    """Every deployment that this router knows."""

    def __init__(self, limits: QueueLimits, chance: Random) -> None:
        self.backends: dict[str, Backend] = {}
        self.statuses: dict[str, Status] = {}
        """What the operator reports of deployments, where the source has it."""
        self.catalogue = Catalogue()
        self.synced = asyncio.Event()
        self.departed: set[ReplicaEndpoint] = set()
        """Removed, with requests in flight that may still be answered, or reach their deadline."""
        self.on_terminating: Callable[[Backend, ReplicaEndpoint], None] = _ignore
        self.on_ejected: Callable[[Backend, ReplicaEndpoint], None] = _ignore
        self.on_removed: Callable[[str], None] = lambda _: None
        self._limits = limits
        self._chance = chance
        self._replicas: dict[str, list[Replica]] = {}

    def put(self, deployment: Deployment) -> Backend:
        """Add or update a deployment."""
        backend = self.backends.get(deployment.key)
        if backend is None:
            backend = Backend(
                deployment, self._limits, self._chance, lambda *found: self.on_ejected(*found), self.departed
            )
            self.backends[deployment.key] = backend
            backend.set_replicas(self._replicas.get(deployment.key, ()))
        else:
            backend.deployment = deployment
        self.catalogue.put(deployment)
        return backend

    def remove(self, key: str) -> None:
        """Remove a deployment."""
        self.statuses.pop(key, None)
        backend = self.backends.pop(key, None)
        if backend is not None:
            self.catalogue.remove(key)
            backend.close()
            self.on_removed(key)

    def set_replicas(self, key: str, replicas: list[Replica]) -> None:
        """Set the replicas of a deployment, which may not be known yet."""
        if replicas:
            self._replicas[key] = replicas
        else:
            self._replicas.pop(key, None)
        backend = self.backends.get(key)
        if backend is not None:
            for endpoint in backend.set_replicas(replicas):
                self.on_terminating(backend, endpoint)

    def owner(self, tag: str) -> tuple[Backend, ReplicaEndpoint] | None:
        """The replica of a tag, in any state, with its deployment."""
        for backend in self.backends.values():
            endpoint = backend.by_tag.get(tag)
            if endpoint is not None:
                return backend, endpoint
        return None
