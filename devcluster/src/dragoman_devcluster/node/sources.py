"""The ConfigMaps and Secrets that a pod refers to."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from dragoman_devcluster.errors import MissingReferenceError
from dragoman_kube.client import KubeClient
from dragoman_kube.kinds import CONFIG_MAP, SECRET
from dragoman_kube.objects import Key, Manifest


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
    for bundle in container.get("envFrom") or ():
        for field, kind in (("secretRef", "Secret"), ("configMapRef", "ConfigMap")):
            if field in bundle:
                yield Source(kind, bundle[field]["name"])


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
