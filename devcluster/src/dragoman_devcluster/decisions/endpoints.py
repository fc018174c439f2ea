"""Which pods a Service reaches, and at which ports.

Source: https://github.com/kubernetes/kubernetes/tree/v1.34.0/staging/src/k8s.io/endpointslice
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_devcluster.decisions.replicas import phase_of
from dragoman_kube.objects import (
    Manifest,
    is_deleting,
    is_true,
    labels_of,
    owner_reference,
    selects,
    uid_of,
)

MANAGED_BY = "endpointslice-controller.k8s.io"
SERVICE_NAME = "kubernetes.io/service-name"

ADDRESS_TYPE = "FQDN"
"""An API server refuses the loopback addresses of our pods as IPv4, and takes them as names. They mean the same to
whoever connects to them."""


@dataclass(frozen=True)
class Endpoint:
    """A pod's answer to a Service.

    Args:
        pod: The pod.
        ports: Its port number for each Service port that it has, by the Service port's name.
        ready: Whether traffic should go there.
        serving: Whether it would answer, even if it is about to end.
        terminating: Whether it is about to end.
    """

    pod: Manifest
    ports: tuple[tuple[str, int], ...]
    ready: bool
    serving: bool
    terminating: bool

    @property
    def address(self) -> str:
        """The pod's address."""
        return str(self.pod["status"]["podIP"])


def endpoints_of(service: Manifest, pods: Sequence[Manifest]) -> list[Endpoint]:
    """The endpoints of a Service, in order of their pods' names; none without a selector.

    Args:
        service: The Service.
        pods: The pods of its namespace.
    """
    selector = service["spec"].get("selector")
    if not selector:
        return []
    found = [_endpoint(service, pod) for pod in pods if selects({"matchLabels": selector}, labels_of(pod))]
    reachable = [endpoint for endpoint in found if endpoint is not None]
    return sorted(reachable, key=lambda endpoint: endpoint.pod["metadata"]["name"])


def _endpoint(service: Manifest, pod: Manifest) -> Endpoint | None:
    if not (pod.get("status") or {}).get("podIP") or phase_of(pod) in ("Succeeded", "Failed"):
        return None
    serving = is_true(pod, "Ready") or bool(service["spec"].get("publishNotReadyAddresses"))
    ports = []
    for port in service["spec"].get("ports") or ():
        number = target_port(port, pod)
        if number is not None:
            ports.append((port.get("name") or "", number))
    terminating = is_deleting(pod)
    return Endpoint(pod, tuple(ports), serving and not terminating, serving, terminating)


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


def endpoint_slices(service: Manifest, endpoints: Sequence[Endpoint]) -> list[Manifest]:
    """The EndpointSlices of a Service: one for each combination of port numbers, at least one.

    Their names are derived from what they hold, so that the same input always gives the same slices.
    """
    groups: dict[tuple[tuple[str, int], ...], list[Endpoint]] = {}
    for endpoint in endpoints:
        groups.setdefault(endpoint.ports, []).append(endpoint)
    return [_slice(service, ports, group) for ports, group in (groups or {(): []}).items()]


def _slice(service: Manifest, ports: tuple[tuple[str, int], ...], endpoints: Sequence[Endpoint]) -> Manifest:
    metadata = service["metadata"]
    protocols = {
        port.get("name") or "": port.get("protocol") or "TCP" for port in service["spec"].get("ports") or ()
    }
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": f"{metadata['name']}-{hashlib.sha256(repr((ADDRESS_TYPE, ports)).encode()).hexdigest()[:5]}",
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
        "endpoints": [_slice_endpoint(endpoint) for endpoint in endpoints],
    }


def _slice_endpoint(endpoint: Endpoint) -> Manifest:
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
