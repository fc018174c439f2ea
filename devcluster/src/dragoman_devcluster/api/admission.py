"""Between a client's object and the store: decoding, defaults, allocation, validation."""

from __future__ import annotations

import copy
import datetime
import ipaddress
from collections.abc import Callable

from dragoman_devcluster.api import strategies
from dragoman_devcluster.api.cel_rules import rule_causes
from dragoman_devcluster.api.crds import CRDS, complete, crd_causes
from dragoman_devcluster.api.errors import ApiError, Cause, invalid, named_details, no_such_object, qualified
from dragoman_devcluster.api.kinds import Kind
from dragoman_devcluster.api.lifecycle import place
from dragoman_devcluster.api.objects import Json, Object, get
from dragoman_devcluster.api.request import Target
from dragoman_devcluster.api.store import Key, Store
from dragoman_devcluster.api.structural import (
    apply_defaults,
    drop_empty,
    drop_nulls,
    normalise_quantities,
    prune,
)
from dragoman_devcluster.api.validation import label_causes, schema_causes

DEFAULT_SERVICE_RANGE = "127.96.0.0/16"
"""Loopback addresses, which Linux answers on without any set-up."""


class Admission:
    """Turns what clients send into what may be stored. `service_range` is where cluster IPs come from."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], datetime.datetime],
        service_range: str = DEFAULT_SERVICE_RANGE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._service_network = ipaddress.ip_network(service_range)

    def decode(self, kind: Kind, sent: Json, *, strict: bool) -> Object:
        """The object pruned, defaulted and normalised.

        Raises ApiError (BadRequest) for another kind, a wrong type, or (if `strict`) an unknown field.
        """
        obj = self._typed(kind, sent)
        if not kind.custom:
            drop_nulls(kind.schema, obj)
        dropped = prune(kind.schema, obj)
        if kind.custom:
            dropped.sort()
        if dropped and strict:
            message = ", ".join(f'unknown field "{path}"' for path in dropped)
            raise ApiError(
                "BadRequest",
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
                f"strict decoding error: {message}",
            )
        _refuse_wrong_types(kind, {"metadata": obj["metadata"]} if kind.custom else obj)
        apply_defaults(kind.schema, obj)
        drop_nulls(kind.schema, obj)
        if not kind.custom:
            normalise_quantities(kind.schema, obj)
            strategies.default_object(kind.resource, obj)
            drop_empty(kind.schema, obj)
        return obj

    def _typed(self, kind: Kind, sent: Json) -> Object:
        if not isinstance(sent, dict):
            raise ApiError("BadRequest", f"the body has to be a {kind.name} as a JSON object")
        if kind.custom and not sent.get("kind"):
            raise ApiError(
                "BadRequest",
                f"the object provided is unrecognized (must be of type {kind.name}): Object 'Kind' is missing",
            )
        api_version, name = sent.get("apiVersion") or kind.api_version, sent.get("kind") or kind.name
        if api_version != kind.api_version:
            raise ApiError(
                "BadRequest",
                f"the API version in the data ({api_version}) does not match the expected API version "
                f"({kind.api_version})",
            )
        if name != kind.name:
            raise ApiError(
                "BadRequest", f'{name} in version "{kind.version}" cannot be handled as a {kind.name}'
            )
        obj = copy.deepcopy(sent)
        if not isinstance(obj.setdefault("metadata", {}), dict):
            raise ApiError("BadRequest", "metadata has to be an object")
        return {"apiVersion": api_version, "kind": name, **obj}

    def decode_apply(self, kind: Kind, sent: Json, target: Target) -> Object:
        """What a server-side apply sends, with nothing filled in; a field outside the schema is an error."""
        if isinstance(sent, dict) and not (sent.get("kind") and sent.get("apiVersion")):
            raise ApiError(
                "BadRequest",
                f"invalid object type: {sent.get('apiVersion', '/')}, Kind={sent.get('kind', '')}",
            )
        obj = self._typed(kind, sent)
        place(target, obj["metadata"])
        typed = (
            f"failed to create typed patch object ({target.namespace}/{target.name}; "
            f"{kind.group}/{kind.version}, Kind={kind.name}): "
        )
        drop_nulls(kind.schema, obj)
        if dropped := prune(kind.schema, obj):
            raise ApiError(
                "", typed + "\n".join(f".{path}: field not declared in schema" for path in dropped)
            )
        for cause in schema_causes(kind.schema, obj):
            if cause.reason == "FieldValueTypeInvalid":
                raise ApiError("", f"{typed}.{cause.field}: {cause.message}")
        if not kind.custom:
            normalise_quantities(kind.schema, obj)
        if kind.has_status:
            for field in [field for field in obj if field not in ("apiVersion", "kind", "metadata")]:
                if (field == "status") != (target.subresource == "status"):
                    del obj[field]
        return obj

    def check_namespace(self, target: Target, name: str) -> None:
        """Refuse a new object where its namespace is missing or going away."""
        if not target.kind.namespaced:
            return
        namespace = self._store.get(Key("namespaces", "", target.namespace))
        if namespace is None:
            raise no_such_object("", "namespaces", target.namespace)
        if get(namespace, "metadata", "deletionTimestamp"):
            kind = target.kind
            ended = f"namespace {target.namespace} is being terminated"
            raise ApiError(
                "Forbidden",
                f'{qualified(kind.plural, kind.group)} "{name}" is forbidden: {ended}',
                details=named_details(kind.group, kind.plural, name),
                causes=[Cause("NamespaceTerminating", ended, "metadata.namespace")],
            )

    def allocate(self, kind: Kind, obj: Object) -> None:
        """Give a Service its address, and a definition its accepted names, in place."""
        if kind.resource == "services":
            self._allocate_address(obj)
        elif kind.resource == CRDS.resource and not crd_causes(obj) and not _causes(kind, obj):
            complete(obj, self._clock())

    def _allocate_address(self, obj: Object) -> None:
        spec = obj.get("spec")
        if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
            return
        live = self._store.get(Key("services", obj["metadata"]["namespace"], obj["metadata"]["name"]))
        if not spec.get("clusterIP"):
            kept = get(live, "spec", "clusterIP")
            spec["clusterIP"] = kept or self._free_address()
        spec["clusterIPs"] = [spec["clusterIP"]]
        dual = spec.get("ipFamilyPolicy") in ("PreferDualStack", "RequireDualStack")
        spec.setdefault("ipFamilies", ["IPv4", "IPv6"] if dual else ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")

    def _free_address(self) -> str:
        taken = {get(service, "spec", "clusterIP") for service in self._store.listed("services")}
        for address in self._service_network.hosts():
            if str(address) not in taken:
                return str(address)
        raise ApiError("Forbidden", f"no free address is left in {self._service_network}; delete a Service")

    def validate(self, kind: Kind, obj: Object, live: Object | None) -> None:
        """Raise ApiError (Invalid) with every cause if an object may not be stored in the place of `live`."""
        found = _causes(kind, obj)
        if kind.custom:
            found += rule_causes(kind.schema, obj, found)
            found += _scale_causes(kind, obj)
        elif kind.resource == CRDS.resource:
            found += crd_causes(obj) if not found else []
        else:
            found += strategies.causes(kind.resource, obj, live)
        found = list(dict.fromkeys(found))
        if found:
            raise invalid(kind.group, kind.name, obj["metadata"].get("name", ""), found)


def _causes(kind: Kind, obj: Object) -> list[Cause]:
    if kind.custom:
        return label_causes(obj) + schema_causes(kind.schema, obj)
    checked = {key: value for key, value in obj.items() if key != "status"}
    # Lists of built-in kinds that merge by key may still repeat one.
    found = schema_causes(kind.schema, checked)
    return label_causes(obj) + [cause for cause in found if cause.reason != "FieldValueDuplicate"]


def _scale_causes(kind: Kind, obj: Object) -> list[Cause]:
    """A custom resource's replicas are a count, independent of its schema."""
    path = kind.scale.replicas if kind.scale else ()
    replicas = get(obj, *path) if path else None
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas >= 0:
        return []
    message = f"Invalid value: {replicas}: should be a non-negative integer"
    return [Cause("FieldValueInvalid", message, "." + ".".join(path))]


def _refuse_wrong_types(kind: Kind, obj: Object) -> None:
    for cause in schema_causes(kind.schema, obj):
        if cause.reason == "FieldValueTypeInvalid":
            raise ApiError(
                "BadRequest",
                f'{kind.name} in version "{kind.version}" cannot be handled as a {kind.name}: '
                f"{cause.field}: {cause.message}",
            )
