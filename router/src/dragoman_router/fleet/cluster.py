"""Follows TranslationDeployments and their replicas in a Kubernetes cluster."""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from kubernetes.aio import client, config

from dragoman_contract.kubernetes import GROUP, LABEL_DEPLOYMENT, PLURAL, VERSION
from dragoman_router.errors import ClusterError
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.listwatch import ListWatch, Manifest, Sink
from dragoman_router.fleet.manifests import (
    deployment,
    key_of,
    owner_of,
    replicas_of_slices,
)
from dragoman_router.metrics import Metrics
from dragoman_router.settings import Settings

log = logging.getLogger(__name__)


class Deployments:
    """What a watch of TranslationDeployments tells, put into the fleet.

    Args:
        fleet: Told.
        scope: Namespace; empty is all of them.
    """

    def __init__(self, fleet: Fleet, scope: str) -> None:
        self._fleet = fleet
        self._scope = scope

    def replace(self, items: list[Manifest]) -> None:
        """These are all there are."""
        there = {key_of(item) for item in items}
        for key in [each for each in self._fleet.backends if each not in there and self._in_scope(each)]:
            self._fleet.remove(key)
        for item in items:
            self.put(item)

    def put(self, item: Manifest) -> None:
        """One is there, as it is now; one that cannot be read keeps what was known of it."""
        try:
            found = deployment(item)
        except ClusterError as error:
            log.warning("%s", error)
            return
        known = self._fleet.backends.get(found.key)
        if known is None or known.deployment != found:
            self._fleet.put(found)

    def remove(self, item: Manifest) -> None:
        """One is gone."""
        self._fleet.remove(key_of(item))

    def _in_scope(self, key: str) -> bool:
        return not self._scope or key.partition("/")[0] == self._scope


class Replicas:
    """What a watch of EndpointSlices tells, put into the fleet."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._items: dict[str, dict[str, Manifest]] = {}

    def replace(self, items: list[Manifest]) -> None:
        """These are all there are."""
        before, self._items = set(self._items), {}
        for item in items:
            if owner := owner_of(item):
                self._items.setdefault(owner, {})[key_of(item)] = item
        for owner in before | set(self._items):
            self._tell(owner)

    def put(self, item: Manifest) -> None:
        """One is there, as it is now."""
        if owner := owner_of(item):
            self._items.setdefault(owner, {})[key_of(item)] = item
            self._tell(owner)

    def remove(self, item: Manifest) -> None:
        """One is gone."""
        if owner := owner_of(item):
            self._items.get(owner, {}).pop(key_of(item), None)
            self._tell(owner)

    def _tell(self, owner: str) -> None:
        items = self._items.get(owner, {})
        if not items:
            self._items.pop(owner, None)
        self._fleet.set_replicas(owner, replicas_of_slices(items.values()))


async def follow(settings: Settings, fleet: Fleet, metrics: Metrics) -> None:
    """Keep the fleet as the cluster is, until cancelled.

    Raises:
        ClusterError: No cluster is named, or its credentials cannot be read.
    """
    async with client.ApiClient(await configuration()) as api, asyncio.TaskGroup() as group:
        watches: list[ListWatch] = []
        for namespace in settings.namespaces or ("",):
            for path, labels, sink in _collections(fleet, namespace):
                broken = metrics.source_errors.labels(path.rpartition("/")[2]).inc
                watches.append(ListWatch(api, path, labels, sink, settings.resync_s, broken))
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


def _collections(fleet: Fleet, namespace: str) -> list[tuple[str, str, Sink]]:
    place = f"namespaces/{namespace}/" if namespace else ""
    deployments = (f"/apis/{GROUP}/{VERSION}/{place}{PLURAL}", "", Deployments(fleet, namespace))
    path = f"/apis/discovery.k8s.io/v1/{place}endpointslices"
    return [deployments, (path, LABEL_DEPLOYMENT, Replicas(fleet))]


async def configuration() -> client.Configuration:
    """Address and credentials of the cluster: KUBECONFIG, ~/.kube/config, or the pod's own service account.

    Raises:
        ClusterError: No cluster is named, or its credentials cannot be read.
    """
    loaded = client.Configuration()
    usual = Path.home() / ".kube" / "config"
    kubeconfig = os.environ.get("KUBECONFIG") or (str(usual) if usual.exists() else None)
    try:
        if kubeconfig:
            await config.load_kube_config(config_file=kubeconfig, client_configuration=loaded)
        else:
            config.load_incluster_config(client_configuration=loaded)
    except (config.ConfigException, OSError, ValueError) as error:
        where = kubeconfig or "the pod's service account"
        raise ClusterError(
            f"read {where}: {str(error).rstrip('.')}; set KUBECONFIG, run inside a cluster, or give --static"
        ) from error
    return loaded
