"""Bodies in Kubernetes' protobuf form, for the few kinds that Helm's and kubectl's typed clients send so.

Answers are always JSON, which those clients accept. Field numbers are those of the `generated.proto` files of
k8s.io/api and k8s.io/apimachinery; a field that is not in the table refuses the body, so nothing gets lost.
Source: https://kubernetes.io/docs/reference/using-api/api-concepts/#protobuf-encoding
"""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterator

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.objects import Json, Object
from dragoman_kube.times import timestamp

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"

_META = "metadata ObjectMeta"
_MESSAGES: dict[str, dict[int, str]] = {
    "Unknown": {1: "typeMeta TypeMeta", 2: "raw raw", 3: "contentEncoding string", 4: "contentType string"},
    "TypeMeta": {1: "apiVersion string", 2: "kind string"},
    "ObjectMeta": {
        1: "name string", 2: "generateName string", 3: "namespace string", 4: "selfLink string", 5: "uid string",
        6: "resourceVersion string", 7: "generation int", 8: "creationTimestamp time", 9: "deletionTimestamp time",
        10: "deletionGracePeriodSeconds int", 11: "labels {}string", 12: "annotations {}string",
        14: "finalizers []string",
    },
    "Namespace": {1: _META, 2: "spec NamespaceSpec", 3: "status NamespaceStatus"},
    "NamespaceSpec": {1: "finalizers []string"},
    "NamespaceStatus": {1: "phase string"},
    "ConfigMap": {1: _META, 2: "data {}string", 3: "binaryData {}bytes", 4: "immutable bool"},
    "Secret": {1: _META, 2: "data {}bytes", 3: "type string", 4: "stringData {}string", 5: "immutable bool"},
    "ServiceAccount": {
        1: _META, 2: "secrets []ObjectReference", 3: "imagePullSecrets []LocalObjectReference",
        4: "automountServiceAccountToken bool",
    },
    "ObjectReference": {
        1: "kind string", 2: "namespace string", 3: "name string", 4: "uid string", 5: "apiVersion string",
        6: "resourceVersion string", 7: "fieldPath string",
    },
    "LocalObjectReference": {1: "name string"},
    "DeleteOptions": {
        1: "gracePeriodSeconds int", 2: "preconditions Preconditions", 3: "orphanDependents bool",
        4: "propagationPolicy string", 5: "dryRun []string",
    },
    "Preconditions": {1: "uid string", 2: "resourceVersion string"},
}  # fmt: skip


def decode(body: bytes) -> Object:
    """The object in a protobuf body.

    Raises ApiError: BadRequest for a broken body, UnsupportedMediaType for a kind that is only read as JSON.
    """
    if not body.startswith(_MAGIC):
        raise ApiError(
            "BadRequest", "the body is not in Kubernetes' protobuf form: it does not begin with k8s\\0"
        )
    try:
        envelope = _message("Unknown", body[len(_MAGIC) :])
        kind = envelope["typeMeta"]["kind"]
        if kind not in _MESSAGES:
            raise _unreadable(kind)
        return {**envelope["typeMeta"], **_message(kind, envelope.get("raw", b""))}
    except (IndexError, KeyError, ValueError) as broken:
        raise ApiError("BadRequest", f"the protobuf body cannot be read: {broken!r}") from broken


def _unreadable(what: str) -> ApiError:
    return ApiError(
        "UnsupportedMediaType",
        f"{what} is not read from {MEDIA_TYPE} here - send application/json instead (with kubectl: create a "
        "manifest with --dry-run=client -o yaml and apply it)",
    )


def _message(kind: str, data: bytes) -> Object:
    table = _MESSAGES[kind]
    result: Object = {}
    for number, value in _fields(data):
        if number not in table:
            raise _unreadable(f"field {number} of {kind}")
        name, _, form = table[number].partition(" ")
        if form.startswith("[]"):
            result.setdefault(name, []).append(_value(form[2:], value))
        elif form.startswith("{}"):
            entry = dict(_fields(value if isinstance(value, bytes) else b""))
            result.setdefault(name, {})[_value("string", entry.get(1, b""))] = _value(
                form[2:], entry.get(2, b"")
            )
        else:
            result[name] = _value(form, value)
    # Go writes fields that are not set as empty ones.
    return {
        name: value for name, value in result.items() if value not in ("", None, {}) and value is not False
    }


def _value(form: str, value: int | bytes) -> Json:
    if isinstance(value, int):
        return bool(value) if form == "bool" else value - (1 << 64 if value >> 63 else 0)
    match form:
        case "string":
            return value.decode()
        case "bytes":
            return base64.b64encode(value).decode()
        case "raw":
            return value
        case "time":
            seconds = dict(_fields(value)).get(1, 0)
            if not isinstance(seconds, int) or not 0 < seconds < 1 << 63:
                return None  # Go's zero time.
            return timestamp(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
    return _message(form, value)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Field numbers and values of a message: whole numbers, or bytes still to be read."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            whole, at = _varint(data, at)
            yield number, whole
        elif wire == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("it ends in the middle of a field")
            yield number, data[at : at + length]
            at += length
        else:
            raise ValueError(f"wire type {wire}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result, at
        shift += 7
