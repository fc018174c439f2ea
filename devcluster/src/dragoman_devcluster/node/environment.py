"""The variables of a container, and the ConfigMaps and Secrets that a pod refers to."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError
from dragoman_devcluster.node.command import expand
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import CONFIG_MAP, SECRET
from dragoman_kube.objects import Key, Manifest, annotations_of, labels_of


@dataclass(frozen=True)
class Source:
    """A ConfigMap or Secret by name, in the pod's namespace."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f'{self.kind.lower()} "{self.name}"'


Contents = Mapping[Source, Mapping[str, bytes] | None]
"""What the sources hold, by key; None for one that does not exist."""


def sources_of_variables(container: Manifest) -> Iterator[Source]:
    """The sources that a container's environment refers to."""
    for variable in container.get("env") or ():
        reference = variable.get("valueFrom") or {}
        if "secretKeyRef" in reference:
            yield Source("Secret", reference["secretKeyRef"]["name"])
        if "configMapKeyRef" in reference:
            yield Source("ConfigMap", reference["configMapKeyRef"]["name"])


async def read(client: KubeClient, namespace: str, sources: Iterable[Source]) -> Contents:
    """Read the sources as they are now."""
    contents: dict[Source, Mapping[str, bytes] | None] = {}
    for source in set(sources):
        kind = SECRET if source.kind == "Secret" else CONFIG_MAP
        found = await client.get(kind, Key(namespace, source.name))
        contents[source] = None if found is None else data_of(found)
    return contents


def data_of(manifest: Manifest) -> dict[str, bytes]:
    """What a ConfigMap or Secret holds, by key."""
    data = manifest.get("data") or {}
    if manifest.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in data.items()}
    binary = {key: base64.b64decode(value) for key, value in (manifest.get("binaryData") or {}).items()}
    return {**binary, **{key: value.encode() for key, value in data.items()}}


def lookup(contents: Contents, source: Source, *, optional: bool) -> Mapping[str, bytes]:
    """What a source holds; nothing if it is missing and that is allowed.

    Raises:
        MissingReferenceError: It is missing.
    """
    found = contents[source]
    if found is None and not optional:
        raise MissingReferenceError(f"{source} not found")
    return found or {}


_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def variables_of(container: Manifest, pod: Manifest, contents: Contents) -> dict[str, str]:
    """The environment of a container's spec, ``$(NAME)`` expanded, paths not yet rewritten.

    `pod` has the addresses that its status will have.

    Raises:
        MissingReferenceError: A source or a key does not exist.
        PodRefusedError: A kind of reference that this node does not know.
    """
    variables: dict[str, str] = {}
    if container.get("envFrom"):
        raise PodRefusedError("the local node does not know envFrom; use env")
    for variable in container.get("env") or ():
        value = _value(variable, pod, contents, variables)
        if value is not None:
            variables[variable["name"]] = value
    return variables


def _value(variable: Manifest, pod: Manifest, contents: Contents, known: Mapping[str, str]) -> str | None:
    reference = variable.get("valueFrom")
    if not reference:
        return expand(variable.get("value") or "", known)
    if "fieldRef" in reference:
        return field_of(pod, reference["fieldRef"]["fieldPath"])
    for field, kind in (("secretKeyRef", "Secret"), ("configMapKeyRef", "ConfigMap")):
        if field in reference:
            return _key(reference[field], Source(kind, reference[field]["name"]), contents)
    raise PodRefusedError(
        f"variable {variable['name']!r}: the local node does not know {', '.join(reference)}; "
        "use value, fieldRef, secretKeyRef or configMapKeyRef"
    )


def _key(reference: Manifest, source: Source, contents: Contents) -> str | None:
    optional = bool(reference.get("optional"))
    value = lookup(contents, source, optional=optional).get(reference["key"])
    if value is None and not optional:
        raise MissingReferenceError(f"couldn't find key {reference['key']} in {source}")
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
