"""Reading Kubernetes objects as the plain dictionaries that the API sends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

Manifest = dict[str, Any]
"""One Kubernetes object as JSON."""

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


def key_of(manifest: Manifest) -> Key:
    """Where the object is: its namespace and name."""
    metadata = manifest["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def uid_of(manifest: Manifest) -> str:
    """The object's uid."""
    return str(manifest["metadata"]["uid"])


def labels_of(manifest: Manifest) -> dict[str, str]:
    """The object's labels, empty if it has none."""
    return manifest["metadata"].get("labels") or {}


def annotations_of(manifest: Manifest) -> dict[str, str]:
    """The object's annotations, empty if it has none."""
    return manifest["metadata"].get("annotations") or {}


def is_deleting(manifest: Manifest) -> bool:
    """Whether deletion was asked for and waits for finalizers or a grace period."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


def controller_of(manifest: Manifest) -> Manifest | None:
    """The owner reference that controls the object, if any."""
    for reference in manifest["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            return dict(reference)
    return None


def is_controlled_by(manifest: Manifest, owner: Manifest) -> bool:
    """Whether `owner` is the controller of the object."""
    reference = controller_of(manifest)
    return reference is not None and reference["uid"] == uid_of(owner)


def owner_reference(owner: Manifest) -> Manifest:
    """The reference that makes `owner` the controller of a child."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(manifest: Manifest, kind: str) -> Manifest | None:
    """The status condition of this type, if present."""
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return dict(condition)
    return None


def is_true(manifest: Manifest, kind: str) -> bool:
    """Whether the status condition of this type is ``True``."""
    condition = condition_of(manifest, kind)
    return condition is not None and condition["status"] == "True"


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches.

    Args:
        selector: ``matchLabels`` and ``matchExpressions``; None selects nothing, an empty one everything.
        labels: Labels of the object in question.
    """
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_meets(expression, labels) for expression in selector.get("matchExpressions") or ())


def _meets(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case _:
            return False


def timestamp(moment: datetime) -> str:
    """RFC 3339 in whole seconds, as the API writes times."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str) -> datetime:
    """The moment that an API timestamp names."""
    return datetime.fromisoformat(text)


def created_at(manifest: Manifest) -> datetime:
    """When the object was created."""
    return parse_time(manifest["metadata"]["creationTimestamp"])
