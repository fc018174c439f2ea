"""Discovery: which groups, versions and resources are served, in the legacy and the aggregated form.

Source: https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api
"""

from __future__ import annotations

import platform
from collections.abc import Iterable

from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Object
from dragoman_devcluster.api.registry import Registry

SERVER_VERSION = "v1.36.0+dragoman"
"""The Kubernetes release whose behaviour this API follows."""

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_SUBRESOURCE_VERBS = ("get", "patch", "update")
_AGGREGATED = "apidiscovery.k8s.io/v2"

REVIEWS: tuple[tuple[str, str, str, str, bool], ...] = (
    ("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", False),
    ("authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", False),
    ("authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", False),
    ("authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", False),
    ("authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", False),
    ("authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", True),
)
"""Kinds that are created but never stored: group, version, kind, plural, namespaced."""


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
        found["eviction"] = ("policy", "v1", "Eviction", ("create",))
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


def _versions(registry: Registry) -> dict[str, list[str]]:
    groups = registry.groups()
    for group, version, *_ in REVIEWS:
        if version not in groups.setdefault(group, []):
            groups[group].append(version)
    return groups


def groups(registry: Registry) -> Object:
    """`/apis` in the legacy form."""
    listed = [group(name, versions) for name, versions in _versions(registry).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, versions: list[str]) -> Object:
    """One API group; the first version is preferred."""
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def find_group(registry: Registry, name: str) -> Object | None:
    """`/apis/GROUP`, or None."""
    versions = _versions(registry).get(name)
    return {"kind": "APIGroup", "apiVersion": "v1", **group(name, versions)} if versions else None


def core_versions() -> Object:
    """`/api` in the legacy form."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def resources(registry: Registry, group: str, version: str) -> Object | None:
    """`/apis/GROUP/VERSION` or `/api/v1`, or None if nothing is served there."""
    listed: list[Object] = []
    for kind in registry:
        if (kind.group, kind.version) == (group, version):
            listed += _legacy(kind)
    for review_group, review_version, name, plural, namespaced in REVIEWS:
        if (review_group, review_version) == (group, version):
            entry = {"name": plural, "singularName": name.lower(), "namespaced": namespaced, "kind": name}
            listed.append({**entry, "verbs": ["create"]})
    if not listed:
        return None
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}


def _legacy(kind: Kind) -> Iterable[Object]:
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


def aggregated(registry: Registry, *, core: bool) -> Object:
    """`/api` (core) or `/apis` in the aggregated form, every resource in one document."""
    found = {"": ["v1"]} if core else _versions(registry)
    items = [
        {
            "metadata": {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None},
            "versions": [_aggregated_version(registry, name, version) for version in versions],
        }
        for name, versions in found.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": _AGGREGATED, "metadata": {}, "items": items}


def _aggregated_version(registry: Registry, group: str, version: str) -> Object:
    listed = [
        _aggregated_resource(kind) for kind in registry if (kind.group, kind.version) == (group, version)
    ]
    for review_group, review_version, name, plural, namespaced in REVIEWS:
        if (review_group, review_version) == (group, version):
            listed.append(
                {
                    "resource": plural,
                    "responseKind": {"group": group, "version": version, "kind": name},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "singularResource": name.lower(),
                    "verbs": ["create"],
                }
            )
    return {"version": version, "resources": listed, "freshness": "Current"}


def _aggregated_resource(kind: Kind) -> Object:
    entry: Object = {
        "resource": kind.plural,
        "responseKind": {"group": kind.group, "version": kind.version, "kind": kind.name},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.called,
        "verbs": list(_VERBS),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    found = [
        {
            "subresource": name,
            "responseKind": {"group": group, "version": version, "kind": body},
            "verbs": list(verbs),
        }
        for name, (group, version, body, verbs) in subresources(kind).items()
    ]
    if found:
        entry["subresources"] = found
    return entry
