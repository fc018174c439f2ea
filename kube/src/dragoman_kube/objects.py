"""Reading Kubernetes objects, which are plain dictionaries as the API sends them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import reduce
from typing import Any, NamedTuple

from dragoman_kube.times import parse_time, timestamp

Manifest = dict[str, Any]
"""One Kubernetes object as JSON."""


class Key(NamedTuple):
    """Namespace and name of an object; the namespace of cluster-scoped objects is empty."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def key_of(manifest: Mapping[str, Any]) -> Key:
    """The key of an object."""
    metadata = manifest["metadata"]
    return Key(metadata.get("namespace") or "", metadata["name"])


def uid_of(manifest: Mapping[str, Any]) -> str:
    """The object's uid."""
    return str(manifest["metadata"]["uid"])


def labels_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The object's labels, empty if it has none."""
    return manifest["metadata"].get("labels") or {}


def annotations_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The object's annotations, empty if it has none."""
    return manifest["metadata"].get("annotations") or {}


def is_deleting(manifest: Mapping[str, Any]) -> bool:
    """Whether the object is being deleted and waits for finalizers or its grace period."""
    return bool(manifest["metadata"].get("deletionTimestamp"))


def controller_of(manifest: Mapping[str, Any]) -> Manifest | None:
    """The owner reference that controls the object, if any."""
    owners = (manifest.get("metadata") or {}).get("ownerReferences") or ()
    return next((dict(owner) for owner in owners if owner.get("controller")), None)


def owner_reference(owner: Mapping[str, Any]) -> Manifest:
    """The reference that makes `owner` the controller of a child."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": uid_of(owner),
        "controller": True,
        "blockOwnerDeletion": True,
    }


def condition_of(manifest: Mapping[str, Any], kind: str) -> Manifest | None:
    """The status condition of this type, if present."""
    for condition in (manifest.get("status") or {}).get("conditions") or ():
        if condition["type"] == kind:
            return dict(condition)
    return None


def is_true(manifest: Mapping[str, Any], kind: str) -> bool:
    """Whether the status condition of this type is ``True``."""
    condition = condition_of(manifest, kind)
    return condition is not None and condition["status"] == "True"


def with_transition_time(manifest: Mapping[str, Any], condition: Manifest, now: datetime) -> Manifest:
    """A condition for the object's status, dated: it keeps the time at which its type got this status."""
    before = condition_of(manifest, condition["type"]) or {}
    since = before.get("lastTransitionTime") if before.get("status") == condition["status"] else None
    return {**condition, "lastTransitionTime": since or timestamp(now)}


def differs(manifest: Manifest, status: Manifest) -> bool:
    """Whether any field of `status` is not yet in the object.

    A field that is absent equals one that is empty or zero, because API servers leave those out.
    """
    before = manifest.get("status") or {}
    return any(_normal(before.get(name)) != _normal(value) for name, value in status.items())


def _normal(value: Any) -> Any:
    if isinstance(value, dict):
        normal = {name: _normal(item) for name, item in value.items()}
        return {name: item for name, item in normal.items() if item is not None} or None
    if isinstance(value, list):
        return [_normal(item) for item in value] or None
    return value or None


def selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Whether a label selector matches.

    None selects nothing, an empty selector everything.
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


def has_ended(pod: Mapping[str, Any]) -> bool:
    """Whether all containers of a pod have ended for good."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def created_at(manifest: Mapping[str, Any]) -> datetime:
    """When the object was created."""
    return parse_time(manifest["metadata"]["creationTimestamp"])


def drop_owned_fields(manifest: Mapping[str, Any]) -> None:
    """Remove which fields each manager owns, and leave the managers: nearly half of the memory of an object."""
    for entry in manifest["metadata"].get("managedFields") or ():
        entry.pop("fieldsV1", None)


def as_applied(found: Mapping[str, Any], manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields of an object in which all fields of a manager are owned by `Apply`; None if they are already.

    Fields of subresources stay. A create makes its client the owner by `Update` of what it sends; a later apply of the
    same client removes only fields that it owns by `Apply`.

    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#upgrading-from-client-side-apply-to-server-side-apply,
    and client-go's k8s.io/client-go/util/csaupgrade, which does the same.
    """
    entries: list[Mapping[str, Any]] = list(found["metadata"].get("managedFields") or ())
    own = [entry for entry in entries if entry.get("manager") == manager and not entry.get("subresource")]
    if all(entry.get("operation") == "Apply" for entry in own):
        return None
    fields: dict[str, Any] = reduce(_union, (entry.get("fieldsV1") or {} for entry in own), {})
    applied = {**own[0], "operation": "Apply", "fieldsV1": fields}
    return [applied, *(entry for entry in entries if entry not in own)]


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _union(one.get(name, {}), other.get(name, {})) for name in (*one, *other)}
