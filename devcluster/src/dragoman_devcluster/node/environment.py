"""The variables of a container, and the ConfigMaps and Secrets that a pod refers to."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError
from dragoman_devcluster.node.command import expand
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import CONFIG_MAP, SECRET, Kind
from dragoman_kube.objects import Key, Manifest, annotations_of, labels_of


async def read(client: KubeClient, kind: Kind, key: Key, *, optional: bool) -> Mapping[str, bytes]:
    """What a ConfigMap or Secret holds, by key; nothing if it is missing and `optional`.

    Raises:
        MissingReferenceError: It is missing.
    """
    found = await client.get(kind, key)
    if found is None:
        if optional:
            return {}
        raise MissingReferenceError(f'{kind.name.lower()} "{key.name}" not found')
    data = found.get("data") or {}
    if kind == SECRET:
        return {name: base64.b64decode(value) for name, value in data.items()}
    binary = {name: base64.b64decode(value) for name, value in (found.get("binaryData") or {}).items()}
    return {**binary, **{name: value.encode() for name, value in data.items()}}


_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


async def variables_of(container: Manifest, pod: Manifest, client: KubeClient) -> dict[str, str]:
    """The environment of a container's spec, ``$(NAME)`` expanded, paths not yet rewritten.

    `pod` has the addresses that its status will have.

    Raises:
        MissingReferenceError: A ConfigMap, a Secret or a key does not exist.
        PodRefusedError: A kind of reference that this node does not know.
    """
    variables: dict[str, str] = {}
    if container.get("envFrom"):
        raise PodRefusedError("the local node does not know envFrom; use env")
    for variable in container.get("env") or ():
        reference = variable.get("valueFrom")
        value: str | None
        if not reference:
            value = expand(variable.get("value") or "", variables)
        elif "fieldRef" in reference:
            value = field_of(pod, reference["fieldRef"]["fieldPath"])
        elif "secretKeyRef" in reference:
            value = await _key(reference["secretKeyRef"], SECRET, pod, client)
        elif "configMapKeyRef" in reference:
            value = await _key(reference["configMapKeyRef"], CONFIG_MAP, pod, client)
        else:
            raise PodRefusedError(
                f"variable {variable['name']!r}: the local node does not know {', '.join(reference)}; "
                "use value, fieldRef, secretKeyRef or configMapKeyRef"
            )
        if value is not None:
            variables[variable["name"]] = value
    return variables


async def _key(reference: Manifest, kind: Kind, pod: Manifest, client: KubeClient) -> str | None:
    optional = bool(reference.get("optional"))
    key = Key(pod["metadata"]["namespace"], reference["name"])
    value = (await read(client, kind, key, optional=optional)).get(reference["key"])
    if value is None and not optional:
        raise MissingReferenceError(
            f'couldn\'t find key {reference["key"]} in {kind.name.lower()} "{key.name}"'
        )
    return None if value is None else value.decode(errors="replace")


def field_of(pod: Manifest, path: str) -> str:
    """A field of the pod, as in the downward API.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/downward-api/#available-fields

    Raises:
        PodRefusedError: The downward API has no such field.
    """
    metadata, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    match = _BY_KEY.fullmatch(path)
    if match:
        return (labels_of(pod) if match.group(1) == "labels" else annotations_of(pod)).get(match.group(2), "")
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName") or "default",
        "status.hostIP": status.get("hostIP"),
        "status.hostIPs": status.get("hostIP"),
        "status.podIP": status.get("podIP"),
        "status.podIPs": status.get("podIP"),
    }
    if path not in fields:
        raise PodRefusedError(f"fieldRef {path!r} is none of {', '.join(sorted(fields))}")
    return str(fields[path] or "")
