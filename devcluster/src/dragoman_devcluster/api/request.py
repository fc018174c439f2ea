"""A request's path and query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.kinds import Kind, Registry
from dragoman_devcluster.api.pod_logs import LogOptions


@dataclass(frozen=True)
class Target:
    """A resource path: the kind, and as far as given the namespace, the name and the subresource."""

    kind: Kind
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_target(path: str, registry: Registry) -> Target | None:
    """Read `/api/v1/…` or `/apis/GROUP/VERSION/…`; None if no such kind is served there."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    if rest[0] == "namespaces" and len(rest) >= 3:
        kind = registry.find(group, version, rest[2])
        if kind is not None and kind.namespaced and len(rest) <= 5:
            return Target(kind, rest[1], *rest[3:])
    kind = registry.find(group, version, rest[0])
    if kind is None or len(rest) > 3 or (kind.namespaced and len(rest) > 1):
        return None
    return Target(kind, "", *rest[1:])


@dataclass(frozen=True)
class Options:
    """The query parameters that the verbs understand."""

    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    watch: bool = False
    timeout_s: float | None = None
    bookmarks: bool = False
    send_initial_events: bool = False
    dry_run: bool = False
    field_manager: str = ""
    force: bool = False
    is_strict: bool = False
    """Whether fields that the schema does not have are refused; default: they are dropped."""
    grace_period_s: int | None = None
    propagation: str = ""
    include_object: str = "Metadata"


def parse_options(query: Mapping[str, str]) -> Options:
    """Read a query; ApiError (BadRequest) for a value that does not fit."""
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise ApiError("BadRequest", f'dryRun: Unsupported value: "{dry_run}": supported values: "All"')
    version = query.get("resourceVersion", "")
    if not version.isdecimal() and version:
        raise ApiError("BadRequest", f'resourceVersion: Invalid value: "{version}": it is not a whole number')
    grace = _whole(query, "gracePeriodSeconds")
    timeout = _whole(query, "timeoutSeconds")
    return Options(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        resource_version=version,
        watch=_true(query.get("watch")),
        timeout_s=float(timeout) if timeout is not None else None,
        bookmarks=_true(query.get("allowWatchBookmarks")),
        send_initial_events=_true(query.get("sendInitialEvents")),
        dry_run=dry_run == "All",
        field_manager=query.get("fieldManager", ""),
        force=_true(query.get("force")),
        is_strict=query.get("fieldValidation") == "Strict",
        grace_period_s=grace,
        propagation=query.get("propagationPolicy", ""),
        include_object=query.get("includeObject") or "Metadata",
    )


def parse_log_options(query: Mapping[str, str]) -> LogOptions:
    """Read the query of a pod's log; ApiError (BadRequest) for what plain files cannot answer."""
    for name in ("sinceSeconds", "sinceTime", "timestamps", "limitBytes"):
        if query.get(name) not in (None, "", "false"):
            raise ApiError("BadRequest", f"the embedded API does not support {name} of logs")
    return LogOptions(
        container=query.get("container", ""),
        follow=_true(query.get("follow")),
        previous=_true(query.get("previous")),
        tail_lines=_whole(query, "tailLines"),
    )


def _true(text: str | None) -> bool:
    return text is not None and text.lower() in ("", "1", "t", "true")


def _whole(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise ApiError("BadRequest", f'{name}: "{text}" is not a whole number') from None
