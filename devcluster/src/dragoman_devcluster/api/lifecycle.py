"""What happens to an object's metadata when it is created, updated and deleted: pure functions.

Source: k8s.io/apiserver's registry/rest (create.go, update.go, delete.go) and registry/generic/registry/store.go.
"""

from __future__ import annotations

import copy
import datetime
import random
import uuid
from collections.abc import Callable

from dragoman_devcluster.api.crds import CLEANUP_FINALIZER, CRDS
from dragoman_devcluster.api.errors import ApiError, Cause, failed_precondition, invalid, stale
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.objects import Object, get, metadata
from dragoman_devcluster.api.request import Target
from dragoman_devcluster.api.validation import name_cause
from dragoman_kube.times import timestamp

_NAME_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""No vowels, so that no words form. Source: k8s.io/apimachinery util/rand."""

_SERVER_OWNED = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def generated_name(prefix: str, choose: Callable[[str], str] = random.choice) -> str:
    """A name from `generateName`: the prefix and five letters or digits."""
    return prefix[:58] + "".join(choose(_NAME_ALPHABET) for _ in range(5))


def prepare_create(target: Target, obj: Object, now: datetime.datetime) -> Object:
    """A new object from what a client sent: named, placed, dated; its status is the server's to write.

    Raises ApiError (BadRequest, Invalid) where name, namespace or resourceVersion do not fit the request.
    """
    kind = target.kind
    obj = copy.deepcopy(obj)
    meta = metadata(obj)
    if meta.get("resourceVersion"):
        raise ApiError("", "resourceVersion should not be set on objects to be created")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generated_name(meta["generateName"])
    place(target, meta)
    name = meta.get("name", "")
    if not name:
        message = "Required value: name or generateName is required"
        raise invalid(kind.group, kind.name, "", [Cause("FieldValueRequired", message, "metadata.name")])
    if cause := name_cause(kind, name):
        raise invalid(kind.group, kind.name, name, [cause])
    for owned in ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(owned, None)
    meta["uid"] = str(uuid.uuid4())
    meta["creationTimestamp"] = timestamp(now)
    if kind.has_generation:
        meta["generation"] = 1
    if kind.has_status:
        obj.pop("status", None)
    return obj


def place(target: Target, meta: Object) -> None:
    """Fill in the name and the namespace of the request; ApiError (BadRequest) where others were sent."""
    if target.name and meta.setdefault("name", target.name) != target.name:
        raise ApiError(
            "BadRequest",
            f"the name of the object ({meta['name']}) does not match the name on the URL ({target.name})",
        )
    if not target.kind.namespaced:
        meta.pop("namespace", None)
        return
    sent = meta.setdefault("namespace", target.namespace)
    if sent != target.namespace:
        raise ApiError(
            "BadRequest",
            f"the namespace of the object ({sent}) does not match the namespace on the request ({target.namespace})",
        )


def prepare_update(target: Target, live: Object, sent: Object) -> Object:
    """The object that an update leads to: what the client may change from `sent`, the rest from `live`.

    Raises ApiError (BadRequest) for another name, ApiError (Conflict) for a stale resourceVersion or another uid.
    """
    kind = target.kind
    obj = copy.deepcopy(sent)
    meta, before = metadata(obj), live["metadata"]
    place(target, meta)
    if meta.get("uid") and meta["uid"] != before["uid"]:
        raise failed_precondition(kind.group, kind.plural, target.name, "UID", meta["uid"], before["uid"])
    version = meta.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        raise stale(kind.group, kind.plural, target.name)
    if not version and kind.custom:
        cause = Cause(
            "FieldValueInvalid",
            "Invalid value: 0: must be specified for an update",
            "metadata.resourceVersion",
        )
        raise invalid(kind.group, kind.name, target.name, [cause])
    meta["resourceVersion"] = before["resourceVersion"]
    for owned in _SERVER_OWNED:
        meta.pop(owned, None)
        if owned in before:
            meta[owned] = before[owned]
    if target.subresource == "status":
        return _status_update(live, obj)
    if kind.resource == "namespaces":
        _keep_finalizers(target, live, obj)
    if kind.has_status:
        obj.pop("status", None)
        if "status" in live:
            obj["status"] = live["status"]
    return obj


def _keep_finalizers(target: Target, live: Object, obj: Object) -> None:
    """A namespace's own finalizers change through `finalize`, which changes nothing else of the spec."""
    finalizers = get(obj if target.subresource == "finalize" else live, "spec", "finalizers")
    obj["spec"] = {"finalizers": finalizers} if finalizers else {}


def _status_update(live: Object, obj: Object) -> Object:
    """The live object with the status of another, and the owners of its fields."""
    result = {**copy.deepcopy(live), "metadata": {**live["metadata"], **_managed(obj)}}
    result.pop("status", None)
    return {**result, **({"status": obj["status"]} if "status" in obj else {})}


def _managed(obj: Object) -> Object:
    return {key: value for key, value in obj["metadata"].items() if key == "managedFields"}


def next_generation(kind: Kind, live: Object, obj: Object) -> int | None:
    """The generation after an update: one more if anything but metadata and status changed."""
    generation = live["metadata"].get("generation")
    if not kind.has_generation:
        return generation  # type: ignore[no-any-return]

    def counted(value: Object) -> Object:
        kept = {key: item for key, item in value.items() if key not in ("metadata", "status")}
        if kind.resource == "deployments.apps":
            # Its annotations are copied to its replica sets, so that they count as well.
            kept["annotations"] = value["metadata"].get("annotations") or {}
        return kept

    return int(generation or 0) + (counted(live) != counted(obj))


def finalizer_cause(live: Object, obj: Object) -> Cause | None:
    """Why an update of an object that is being deleted is refused: it adds finalizers."""
    if not get(live, "metadata", "deletionTimestamp"):
        return None
    before = get(live, "metadata", "finalizers") or []
    added = [finalizer for finalizer in get(obj, "metadata", "finalizers") or [] if finalizer not in before]
    if not added:
        return None
    message = f"Forbidden: no new finalizers can be added if the object is being deleted, found {added}"
    return Cause("FieldValueForbidden", message, "metadata.finalizers")


def released(obj: Object) -> bool:
    """Whether nothing holds an object any longer that is being deleted."""
    meta = obj["metadata"]
    return bool(
        meta.get("deletionTimestamp")
        and not meta.get("finalizers")
        and not meta.get("deletionGracePeriodSeconds")
        and not get(obj, "spec", "finalizers")
    )


def delete(kind: Kind, live: Object, grace_period_s: int | None, now: datetime.datetime) -> Object | None:
    """The object marked, which waits for finalizers or for the node; None where it goes at once."""
    meta = live["metadata"]
    grace_s = _grace_s(kind, live, grace_period_s)
    marked = meta.get("deletionTimestamp")
    if marked:
        # A second request may only shorten the wait.
        grace_s = min(grace_s, meta.get("deletionGracePeriodSeconds") or 0)
    finalizers = list(meta.get("finalizers") or ())
    if kind.resource == CRDS.resource and CLEANUP_FINALIZER not in finalizers:
        finalizers.append(CLEANUP_FINALIZER)
    held = finalizers or (kind.resource == "namespaces" and get(live, "spec", "finalizers"))
    if not held and grace_s == 0:
        return None
    same = finalizers == (meta.get("finalizers") or [])
    if marked and same and grace_s == (meta.get("deletionGracePeriodSeconds") or 0):
        return live
    obj = copy.deepcopy(live)
    metadata(obj)["deletionTimestamp"] = timestamp(now + datetime.timedelta(seconds=grace_s))
    metadata(obj)["deletionGracePeriodSeconds"] = grace_s
    if finalizers:
        metadata(obj)["finalizers"] = finalizers
    if kind.resource == "namespaces":
        obj.setdefault("status", {})["phase"] = "Terminating"
    if kind.resource in ("namespaces", CRDS.resource):
        metadata(obj).pop("deletionGracePeriodSeconds")
    elif kind.has_generation and not marked:
        metadata(obj)["generation"] = int(meta.get("generation") or 0) + 1
    return obj


def _grace_s(kind: Kind, live: Object, requested_s: int | None) -> int:
    """Only a pod that a node has taken dies gracefully; everything else has no process to stop."""
    if kind.resource != "pods":
        return 0
    if not get(live, "spec", "nodeName") or get(live, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    default = get(live, "spec", "terminationGracePeriodSeconds")
    if requested_s is None:
        return 30 if default is None else int(default)
    # A negative grace period means the smallest that is still graceful.
    return requested_s if requested_s >= 0 else 1
