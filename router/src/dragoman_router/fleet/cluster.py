"""Follows TranslationDeployments and their replicas in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import logging

from dragoman_contract.kubernetes import API_VERSION, KIND, LABEL_DEPLOYMENT, PLURAL
from dragoman_kube import config, errors
from dragoman_kube.client import connect
from dragoman_kube.kinds import ENDPOINT_SLICE, Kind
from dragoman_kube.mirror import Mirror
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
    """Puts TranslationDeployments into the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def changed(self, before: Manifest | None, after: Manifest | None) -> None:
        """One was added, modified or deleted; one that cannot be read keeps what was known of it."""
        if after is None:
            if before is not None:
                self._fleet.remove(key_of(before))
            return
        try:
            found = deployment(after)
        except ClusterError as error:
            log.warning("%s", error)
            return
        known = self._fleet.backends.get(found.key)
        if known is None or known.deployment != found:
            self._fleet.put(found)
        reported = status(after)
        if reported is None:
            self._fleet.statuses.pop(found.key, None)
        else:
            self._fleet.statuses[found.key] = reported


class Replicas:
    """Puts the replicas of EndpointSlices into the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._slices: dict[str, dict[str, Manifest]] = {}
        """By the TranslationDeployment and the slice's name."""

    def changed(self, before: Manifest | None, after: Manifest | None) -> None:
        """One was added, modified or deleted."""
        owners = {owner: None for found in (before, after) if found and (owner := owner_of(found))}
        if before is not None and (owner := owner_of(before)):
            self._slices.get(owner, {}).pop(key_of(before), None)
        if after is not None and (owner := owner_of(after)):
            self._slices.setdefault(owner, {})[key_of(after)] = after
        for owner in owners:
            if not self._slices.get(owner):
                self._slices.pop(owner, None)
            self._fleet.set_replicas(owner, replicas_of_slices(self._slices.get(owner, {}).values()))


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
        mirror = Mirror(
            kube,
            settings.namespaces,
            resync_s=settings.resync_s,
            broken=lambda kind: metrics.watch_errors.labels(kind.plural).inc(),
        )
        mirror.follow(TRANSLATION_DEPLOYMENT, Deployments(fleet).changed, optional=False)
        mirror.follow(ENDPOINT_SLICE, Replicas(fleet).changed, labels=LABEL_DEPLOYMENT, optional=False)
        group.create_task(mirror.run())
        await mirror.synced()
        fleet.synced.set()
        log.info(
            "following %d deployments, %d replicas",
            len(fleet.backends),
            sum(len(backend.endpoints) for backend in fleet.backends.values()),
        )
