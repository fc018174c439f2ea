"""The variables of a container."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dragoman_devcluster.errors import MissingReferenceError, PodRefusedError
from dragoman_devcluster.node.command import expand
from dragoman_devcluster.node.sources import Contents, Source, lookup
from dragoman_kube.objects import Manifest, annotations_of, labels_of

_BY_KEY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def variables_of(container: Manifest, pod: Manifest, contents: Contents) -> dict[str, str]:
    """The environment of a container's spec, ``$(NAME)`` expanded, paths not yet rewritten.

    Args:
        container: The container of the pod's spec.
        pod: The pod, with the addresses that its status will have.
        contents: What its sources hold.

    Raises:
        MissingReferenceError: A source or a key does not exist.
        PodRefusedError: A kind of reference that this node does not know.
    """
    variables: dict[str, str] = {}
    for bundle in container.get("envFrom") or ():
        variables.update(_bundle(bundle, contents))
    for variable in container.get("env") or ():
        value = _value(variable, pod, contents, variables)
        if value is not None:
            variables[variable["name"]] = value
    return variables


def _bundle(bundle: Manifest, contents: Contents) -> dict[str, str]:
    kind, field = ("Secret", "secretRef") if "secretRef" in bundle else ("ConfigMap", "configMapRef")
    reference = bundle[field]
    source = Source(kind, reference["name"])
    found = lookup(contents, source, optional=bool(reference.get("optional")))
    prefix = bundle.get("prefix") or ""
    return {prefix + key: value.decode(errors="replace") for key, value in found.items()}


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
