"""Services: publishes an EndpointSlice each and the local address, and keeps the proxy's table.

Source: https://github.com/kubernetes/kubernetes/tree/v1.34.0/staging/src/k8s.io/endpointslice
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from dragoman_contract.kubernetes import LOCAL_ADDRESS
from dragoman_devcluster.controllers.controller import work_queue
from dragoman_devcluster.proxy import Address, ServiceProxy
from dragoman_kube.kinds import ENDPOINT_SLICE, POD, SERVICE
from dragoman_kube.mirror import Mirror
from dragoman_kube.objects import (
    Key,
    Manifest,
    annotations_of,
    has_ended,
    is_deleting,
    is_true,
    key_of,
    labels_of,
    owner_reference,
    selects,
    uid_of,
)

MANAGED_BY = "endpointslice-controller.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"

ADDRESS_TYPE = "FQDN"
"""An API server refuses the loopback addresses of our pods as IPv4, and takes them as names, which mean the same
to clients."""


DUAL_STACK = ("PreferDualStack", "RequireDualStack")


@dataclass(frozen=True)
class PodEndpoint:
    """A pod behind a Service, with its port number for each Service port that it has, by that port's name."""

    pod: Manifest
    ports: tuple[tuple[str, int], ...]
    ready: bool
    serving: bool
    terminating: bool

    @property
    def address(self) -> str:
        """The pod's address."""
        return str(self.pod["status"]["podIP"])


def endpoints_of(service: Manifest, pods: Sequence[Manifest]) -> list[PodEndpoint]:
    """The endpoints of a Service, in order of their pods' names; none without a selector."""
    selector = service["spec"].get("selector")
    if not selector:
        return []
    found = [_endpoint(service, pod) for pod in pods if selects({"matchLabels": selector}, labels_of(pod))]
    reachable = [endpoint for endpoint in found if endpoint is not None]
    return sorted(reachable, key=lambda endpoint: endpoint.pod["metadata"]["name"])


def _endpoint(service: Manifest, pod: Manifest) -> PodEndpoint | None:
    if not (pod.get("status") or {}).get("podIP") or has_ended(pod):
        return None
    serving = is_true(pod, "Ready") or bool(service["spec"].get("publishNotReadyAddresses"))
    ports = []
    for port in service["spec"].get("ports") or ():
        number = target_port(port, pod)
        if number is not None:
            ports.append((port.get("name") or "", number))
    terminating = is_deleting(pod)
    return PodEndpoint(pod, tuple(ports), serving and not terminating, serving, terminating)


def target_port(service_port: Manifest, pod: Manifest) -> int | None:
    """The number of the pod's port that a Service port leads to; None if the pod has no port of that name."""
    target = service_port.get("targetPort") or service_port["port"]
    if isinstance(target, int):
        return target
    for container in pod["spec"]["containers"]:
        for port in container.get("ports") or ():
            if port.get("name") == target:
                return int(port["containerPort"])
    return None


def routes(
    service: Manifest, address: str, endpoints: Sequence[PodEndpoint]
) -> dict[Address, Sequence[Address]]:
    """Where each TCP port of a Service leads: to the ready endpoints."""
    table: dict[Address, Sequence[Address]] = {}
    for port in service["spec"].get("ports") or ():
        if (port.get("protocol") or "TCP") != "TCP":
            continue
        name = port.get("name") or ""
        ready = [endpoint for endpoint in endpoints if endpoint.ready]
        table[address, port["port"]] = [
            (endpoint.address, number)
            for endpoint in ready
            for label, number in endpoint.ports
            if label == name
        ]
    return table


def endpoint_slice(service: Manifest, endpoints: Sequence[PodEndpoint]) -> Manifest:
    """The EndpointSlice of a Service: the endpoints whose port numbers are those of the first."""
    metadata = service["metadata"]
    ports = endpoints[0].ports if endpoints else ()
    protocols = {
        port.get("name") or "": port.get("protocol") or "TCP" for port in service["spec"].get("ports") or ()
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": {
                **labels_of(service),
                SERVICE_NAME: metadata["name"],
                "endpointslice.kubernetes.io/managed-by": MANAGED_BY,
            },
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": ADDRESS_TYPE,
        "ports": [{"name": name, "port": port, "protocol": protocols[name]} for name, port in ports],
        "endpoints": [_slice_endpoint(endpoint) for endpoint in endpoints if endpoint.ports == ports],
    }


def endpoint_slices(service: Manifest, endpoints: Sequence[PodEndpoint]) -> list[Manifest]:
    """The EndpointSlices of a Service: `endpoint_slice`, and for a Service with IPv6 a second one of the same pods.

    Nothing listens at the addresses of the second one, because a loopback interface has a single address of IPv6. A
    client sees what it would see in a cluster with both families.
    """
    first = endpoint_slice(service, endpoints)
    spec = service["spec"]
    if spec.get("ipFamilyPolicy") not in DUAL_STACK and "IPv6" not in (spec.get("ipFamilies") or ()):
        return [first]
    listed = [{**each, "addresses": [ipv6_of(each["addresses"][0])]} for each in first["endpoints"]]
    metadata = {**first["metadata"], "name": f"{first['metadata']['name']}-ipv6"}
    return [first, {**first, "metadata": metadata, "addressType": "IPv6", "endpoints": listed}]


def ipv6_of(address: str) -> str:
    """An address of a private network of IPv6 that ends in one of IPv4: ``fd00::7f40:1`` for 127.64.0.1."""
    return str(IPv6Address((0xFD00 << 112) + int(IPv4Address(address))))


def _slice_endpoint(endpoint: PodEndpoint) -> Manifest:
    metadata = endpoint.pod["metadata"]
    return {
        "addresses": [endpoint.address],
        "conditions": {
            "ready": endpoint.ready,
            "serving": endpoint.serving,
            "terminating": endpoint.terminating,
        },
        "nodeName": endpoint.pod["spec"].get("nodeName"),
        "targetRef": {
            "kind": "Pod",
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": uid_of(endpoint.pod),
        },
    }


class EndpointController:
    """Reconciles the EndpointSlice of each Service, and where the proxy leads."""

    def __init__(self, mirror: Mirror, proxy: ServiceProxy) -> None:
        self._mirror = mirror
        self._proxy = proxy
        self.queue = work_queue("endpoints")

    def start(self) -> None:
        """Follow the kinds that concern Services."""
        self._mirror.follow(SERVICE, self._service_changed)
        self._mirror.follow(POD, self._pod_changed)
        self._mirror.follow(ENDPOINT_SLICE, self._slice_changed)

    async def reconcile(self, key: Key) -> float | None:
        """Bring one Service's slice, annotation and table entry up to date."""
        service = self._mirror.get(SERVICE, key)
        if service is None or is_deleting(service):
            await self._proxy.update(key, {})
            return None
        endpoints = endpoints_of(service, self._mirror.list(POD, key[0]))
        address = local_address(service["spec"].get("clusterIP") or "")
        await self._proxy.update(key, routes(service, address, endpoints) if address else {})
        if address and annotations_of(service).get(LOCAL_ADDRESS) != address:
            await self._mirror.merge(SERVICE, key, {"metadata": {"annotations": {LOCAL_ADDRESS: address}}})
        if service["spec"].get("selector"):
            for wanted in endpoint_slices(service, endpoints):
                await self._publish(wanted)
        return None

    async def _publish(self, wanted: Manifest) -> None:
        known = self._mirror.get(ENDPOINT_SLICE, key_of(wanted))
        if known is None:
            await self._mirror.create(ENDPOINT_SLICE, wanted)
            return
        parts = {part: wanted[part] for part in ("ports", "endpoints")}
        # A server that stores objects as protobuf returns an empty list as null.
        if any((known.get(part) or []) != value for part, value in parts.items()):
            await self._mirror.merge(ENDPOINT_SLICE, key_of(wanted), parts)

    def _service_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        service = new or old
        if service is not None:
            self.queue.add(key_of(service))

    def _slice_changed(self, old: Manifest | None, new: Manifest | None) -> None:
        item = new or old
        if item is not None and (name := labels_of(item).get(SERVICE_NAME)):
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
