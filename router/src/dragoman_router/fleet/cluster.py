"""Follows TranslationDeployments and their replicas in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import logging

from dragoman_contract.kubernetes import API_VERSION, KIND, LABEL_DEPLOYMENT, PLURAL
from dragoman_kube import config, errors
from dragoman_kube.client import connect
from dragoman_kube.kinds import ENDPOINT_SLICE, Kind
from dragoman_kube.list_watch import ListWatch, Sink
from dragoman_kube.objects import Manifest
from dragoman_router.errors import ClusterError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.manifests import (
    deployment,
    key_of,
    owner_of,
    replicas_of_slices,
)
from dragoman_router.fleet.status import status
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)

TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)


class Deployments:
    """Puts TranslationDeployments into the fleet.

    Args:
        scope: Namespace; empty is all of them.
    """

    def __init__(self, fleet: Fleet, scope: str) -> None:
        self._fleet = fleet
        self._scope = scope

    def replace(self, items: list[Manifest], _resource_version: str) -> None:
        """The collection holds these objects, and no others."""
        there = {key_of(item) for item in items}
        for key in [each for each in self._fleet.backends if each not in there and self._in_scope(each)]:
            self._fleet.remove(key)
        for item in items:
            self.put(item)

    def put(self, item: Manifest) -> None:
        """One was added or modified; one that cannot be read keeps what was known of it."""
        try:
            found = deployment(item)
        except ClusterError as error:
            log.warning("%s", error)
            return
        known = self._fleet.backends.get(found.key)
        if known is None or known.deployment != found:
            self._fleet.put(found)
        reported = status(item)
        if reported is None:
            self._fleet.statuses.pop(found.key, None)
        else:
            self._fleet.statuses[found.key] = reported

    def remove(self, item: Manifest) -> None:
        """One was deleted."""
        self._fleet.remove(key_of(item))

    def _in_scope(self, key: str) -> bool:
        return not self._scope or key.partition("/")[0] == self._scope


class Replicas:
    """Puts the replicas of EndpointSlices into the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._items: dict[str, dict[str, Manifest]] = {}

    def replace(self, items: list[Manifest], _resource_version: str) -> None:
        """The collection holds these objects, and no others."""
        before, self._items = set(self._items), {}
        for item in items:
            if owner := owner_of(item):
                self._items.setdefault(owner, {})[key_of(item)] = item
        for owner in before | set(self._items):
            self._update(owner)

    def put(self, item: Manifest) -> None:
        """One was added or modified."""
        if owner := owner_of(item):
            self._items.setdefault(owner, {})[key_of(item)] = item
            self._update(owner)

    def remove(self, item: Manifest) -> None:
        """One was deleted."""
        if owner := owner_of(item):
            self._items.get(owner, {}).pop(key_of(item), None)
            self._update(owner)

    def _update(self, owner: str) -> None:
        items = self._items.get(owner, {})
        if not items:
            self._items.pop(owner, None)
        self._fleet.set_replicas(owner, replicas_of_slices(items.values()))


async def follow(settings: Settings, fleet: Fleet, metrics: Metrics) -> None:
    """Keep the fleet as the cluster is, until cancelled.

    Raises:
        ClusterError: There is no cluster to connect to, or its credentials cannot be read.
    """
    try:
        configuration = await config.configuration()
    except errors.ClusterError as error:
        raise ClusterError(f"{error}, or give --static") from error
    async with connect(configuration) as kube, asyncio.TaskGroup() as group:
        watches: list[ListWatch] = []
        for namespace in settings.namespaces or ("",):
            followed: list[tuple[Kind, str, Sink]] = [
                (TRANSLATION_DEPLOYMENT, "", Deployments(fleet, namespace)),
                (ENDPOINT_SLICE, LABEL_DEPLOYMENT, Replicas(fleet)),
            ]
            watches += [
                ListWatch(
                    kube,
                    kind,
                    sink,
                    namespace=namespace,
                    labels=labels,
                    resync_s=settings.resync_s,
                    broken=metrics.watch_errors.labels(kind.plural).inc,
                )
                for kind, labels, sink in followed
            ]
        for watch in watches:
            group.create_task(watch.run())
        for watch in watches:
            await watch.listed.wait()
        fleet.synced.set()
        log.info(
            "following %d deployments, %d replicas",
            len(fleet.backends),
            sum(len(backend.endpoints) for backend in fleet.backends.values()),
        )
