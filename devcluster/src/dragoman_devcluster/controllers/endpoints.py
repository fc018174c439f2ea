"""Services: publishes EndpointSlices and the local address, and keeps the proxy's table."""

from __future__ import annotations

from collections.abc import Callable

from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_devcluster.controllers.queue import work_queue
from dragoman_devcluster.decisions.endpoints import SERVICE_NAME as SLICE_SERVICE
from dragoman_devcluster.decisions.endpoints import Endpoint, endpoint_slices, endpoints_of
from dragoman_devcluster.mirror import Mirror
from dragoman_kube.kinds import ENDPOINT_SLICE, POD, SERVICE
from dragoman_kube.objects import (
    Key,
    Manifest,
    annotations_of,
    is_deleting,
    key_of,
    labels_of,
    selects,
)


class EndpointController:
    """Reconciles the EndpointSlices of Services, and updates the proxy.

    Args:
        mirror: The cluster's objects.
        on_service: Called with a Service, its local address (empty if it has none) and its endpoints
            after each change; with None when the Service of that key is gone.
    """

    def __init__(
        self,
        mirror: Mirror,
        *,
        on_service: Callable[[Key, Manifest | None, str, list[Endpoint]], None],
    ) -> None:
        self._mirror = mirror
        self._on_service = on_service
        self.queue = work_queue("endpoints")

    def start(self) -> None:
        """Follow the kinds that concern Services."""
        self._mirror.follow(SERVICE, self._service_changed)
        self._mirror.follow(POD, self._pod_changed)
        self._mirror.follow(ENDPOINT_SLICE, self._slice_changed)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one Service's slices, annotation and table entry up to date."""
        service = self._mirror.get(SERVICE, key)
        if service is None or is_deleting(service):
            self._on_service(key, None, "", [])
            return None
        endpoints = endpoints_of(service, self._mirror.list(POD, key[0]))
        address = local_address(service["spec"].get("clusterIP") or "")
        self._on_service(key, service, address, endpoints)
        if address and annotations_of(service).get(LOCAL_ADDRESS) != address:
            await self._mirror.merge(SERVICE, key, {"metadata": {"annotations": {LOCAL_ADDRESS: address}}})
        if service["spec"].get("selector"):
            await self._publish(key, endpoint_slices(service, endpoints))
        return None

    async def _publish(self, key: Key, wanted: list[Manifest]) -> None:
        names = {item["metadata"]["name"] for item in wanted}
        for item in self._mirror.list(ENDPOINT_SLICE, key[0]):
            if labels_of(item).get(SLICE_SERVICE) == key[1] and item["metadata"]["name"] not in names:
                await self._mirror.delete(ENDPOINT_SLICE, item)
        for item in wanted:
            known = self._mirror.get(ENDPOINT_SLICE, key_of(item))
            if known is None:
                await self._mirror.create(ENDPOINT_SLICE, item)
            # A server that stores objects as protobuf returns an empty list as null.
            elif any((known.get(part) or []) != item[part] for part in ("ports", "endpoints")):
                patch = {part: item[part] for part in ("ports", "endpoints")}
                await self._mirror.merge(ENDPOINT_SLICE, key_of(item), patch)

    def _service_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        service = new or old
        if service is not None:
            self.queue.add(key_of(service))

    def _slice_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        item = new or old
        if item is not None and (name := labels_of(item).get(SLICE_SERVICE)):
            self.queue.add(Key(key_of(item).namespace, name))

    def _pod_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        pods = [pod for pod in (old, new) if pod is not None]
        for service in self._mirror.list(SERVICE, key_of(pods[0])[0]):
            selector = service["spec"].get("selector")
            if selector and any(selects({"matchLabels": selector}, labels_of(pod)) for pod in pods):
                self.queue.add(key_of(service))


def local_address(cluster_ip: str) -> str:
    """The loopback address of a Service: its cluster address, moved into 127.0.0.0/8; empty for none.

    The embedded API hands out loopback addresses; a real kube-apiserver does not, so there the first octet
    is replaced. All of a cluster's Services share that octet, so no two get the same address.
    """
    first, _, rest = cluster_ip.partition(".")
    return f"127.{rest}" if first.isdigit() and rest else ""
