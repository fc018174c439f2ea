"""Which groups, versions and resources are served, and their OpenAPI v3 documents.

Clients that prefer the aggregated form of discovery take this one.

Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable

from dragoman_devcluster.api.kinds import Kind, Registry
from dragoman_devcluster.api.objects import Object

SERVER_VERSION = "v1.36.0+dragoman"
"""The Kubernetes release whose behaviour this API follows."""

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")


def subresources(kind: Kind) -> dict[str, tuple[str, str, str, tuple[str, ...]]]:
    """A kind's subresources: name to group, version and kind of their body, and their verbs."""
    own = (kind.group, kind.version, kind.name, _SUBRESOURCE_VERBS)
    found: dict[str, tuple[str, str, str, tuple[str, ...]]] = {}
    if kind.has_status:
        found["status"] = own
    if kind.scale:
        found["scale"] = ("autoscaling", "v1", "Scale", _SUBRESOURCE_VERBS)
    if kind.resource == "pods":
        found["binding"] = ("", "v1", "Binding", ("create",))
        found["log"] = ("", "v1", "Pod", ("get",))
    if kind.resource == "namespaces":
        found["finalize"] = ("", "v1", "Namespace", ("update",))
    if kind.resource == "serviceaccounts":
        found["token"] = ("authentication.k8s.io", "v1", "TokenRequest", ("create",))
    return found


def version_info() -> Object:
    """The response of `/version`."""
    major, minor = SERVER_VERSION.lstrip("v").split(".")[:2]
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return {
        "major": major,
        "minor": minor,
        "gitVersion": SERVER_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": f"{platform.system().lower()}/{machine}",
    }


def groups(registry: Registry) -> Object:
    """`/apis`."""
    listed = [group(name, versions) for name, versions in registry.groups().items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: list[str]) -> Object:
    """One API group; the first version is preferred."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def core_versions() -> Object:
    """`/api`."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def resources(registry: Registry, group: str, version: str) -> Object | None:
    """`/apis/GROUP/VERSION` or `/api/v1`, or None if nothing is served there."""
    listed: list[Object] = []
    for kind in registry:
        if (kind.group, kind.version) == (group, version):
            listed += _resources(kind)
    if not listed:
        return None
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def _resources(kind: Kind) -> Iterable[Object]:
    entry: Object = {
        "name": kind.plural,
        "singularName": kind.called,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": list(_VERBS),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    yield entry
    for name, (group, version, body, verbs) in subresources(kind).items():
        yield {
            "name": f"{kind.plural}/{name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **(
                {"group": group, "version": version} if (group, version) != (kind.group, kind.version) else {}
            ),
            "kind": body,
            "verbs": list(verbs),
        }


_GVK = "x-kubernetes-group-version-kind"
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def openapi_index(registry: Registry) -> Object:
    """`/openapi/v3`: where the document of each group and version is. The hash changes with the registry."""
    paths = sorted({_base(kind) for kind in registry})
    digest = hashlib.sha256(f"{SERVER_VERSION}:{registry.revision}:{id(registry)}".encode()).hexdigest()[:32]
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path in paths}}


def _base(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def openapi_document(registry: Registry, path: str) -> Object | None:
    """The document of a path such as `apis/apps/v1`, or None if nothing is served there.

    It has the schemas of custom resources, for `kubectl explain`, and which parameters a patch takes: clients ask for
    these before they leave the validation of fields to the server. The fields of built-in kinds are not described.
    Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#openapi-v3
    """
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
