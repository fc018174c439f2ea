"""OpenAPI v3 documents: the schemas of custom resources, for `kubectl explain`, and which parameters a patch takes.

Clients ask for the latter before they leave the validation of fields to the server. The fields of built-in kinds are
not described.
Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
"""

from __future__ import annotations

import hashlib

from dragoman_devcluster.api.discovery import SERVER_VERSION
from dragoman_devcluster.api.kinds import Kind, Registry
from dragoman_devcluster.api.objects import Object

_GVK = "x-kubernetes-group-version-kind"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def index(registry: Registry) -> Object:
    """`/openapi/v3`: where the document of each group and version is. The hash changes with the registry."""
    paths = sorted({_base(kind) for kind in registry})
    digest = hashlib.sha256(f"{SERVER_VERSION}:{registry.revision}:{id(registry)}".encode()).hexdigest()[:32]
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path in paths}}


def _base(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(registry: Registry, path: str) -> Object | None:
    """The document of a path such as `apis/apps/v1`, or None if nothing is served there."""
    kinds = [kind for kind in registry if _base(kind) == path]
    if not kinds:
        return None
    components: Object = {}
    paths: Object = {}
    for kind in kinds:
        about = {_GVK: [{"group": kind.group, "version": kind.version, "kind": kind.name}]}
        name = ".".join([*reversed(kind.group.split(".")), kind.version, kind.name]).lstrip(".")
        components[name] = {**(kind.schema if kind.custom else {"type": "object"}), **about}
        paths |= _paths(kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": SERVER_VERSION},
        "paths": paths,
        "components": {"schemas": components},
    }


def _paths(kind: Kind) -> Object:
    base = f"/{_base(kind)}"
    every = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
    operation = {
        _GVK: {"group": kind.group, "version": kind.version, "kind": kind.name},
        "parameters": [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _PARAMETERS],
        "responses": {"200": {"description": "OK"}},
    }
    return {every: {"get": operation}, f"{every}/{{name}}": {"get": operation, "patch": operation}}
