"""JSON patches, merge patches, and strategic merge patches, whose lists merge by the keys that the schema names.

Of the directive `$patch` only `delete` is supported, for items of lists; it is the one that kubectl and Helm send.

Source: RFC 6902, RFC 7386 and
https://github.com/kubernetes/community/blob/master/contributors/devel/sig-api-machinery/strategic-merge-patch.md
"""

from __future__ import annotations

import copy
from typing import cast

import jsonpatch

from dragoman_devcluster.api.errors import ApiError
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.structural import child_schema

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def json_patch(obj: Object, operations: Json) -> Object:
    """The object after a JSON patch; ApiError (BadRequest) if it is none, ApiError (Invalid) if it does not apply."""
    if not isinstance(operations, list):
        raise ApiError("BadRequest", "json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    try:
        return cast(Object, jsonpatch.apply_patch(obj, operations))
    except jsonpatch.InvalidJsonPatch as broken:
        raise ApiError("BadRequest", f"the JSON patch cannot be read: {broken}") from broken
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as failed:
        raise ApiError(
            "Invalid", f"the server rejected our request due to an error in our request: {failed}"
        ) from failed


def merge_patch(obj: Object, patch: Json) -> Object:
    """The object after a merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise ApiError("BadRequest", "a merge patch has to be an object")
    return cast(Object, _merged(copy.deepcopy(obj), patch))


def _merged(value: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    merged = value if isinstance(value, dict) else {}
    for key, change in patch.items():
        if change is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), change)
    return merged


def served(*, custom: bool) -> list[str]:
    """The patch formats that a kind accepts."""
    formats = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH]
    return formats if custom else [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH]


_DIRECTIVE = "$patch"
_ORDER, _DELETE, _RETAIN = "$setElementOrder/", "$deleteFromPrimitiveList/", "$retainKeys"


def strategic_patch(schema: Object, obj: Object, patch: Json) -> Object:
    """The object after a strategic merge patch of a kind with this schema."""
    if not isinstance(patch, dict):
        raise ApiError("BadRequest", "a strategic merge patch has to be an object")
    return cast(Object, _merged_by(schema, copy.deepcopy(obj), patch))


def _merged_by(schema: Object, value: Json, patch: Json) -> Json:
    if not isinstance(patch, dict):
        return patch
    if _DIRECTIVE in patch:
        raise ApiError("BadRequest", "the embedded API supports $patch: delete of a list's item alone")
    result = value if isinstance(value, dict) else {}
    if _RETAIN in patch:
        result = {key: item for key, item in result.items() if key in patch[_RETAIN]}
    for key, change in patch.items():
        if key.startswith((_ORDER, _DELETE)) or key == _RETAIN:
            continue
        child = child_schema(schema, key) or {}
        if change is None:
            result.pop(key, None)
        elif isinstance(change, list) and _merges(child):
            result[key] = _merged_list(child, result.get(key) or [], change)
        else:
            result[key] = _merged_by(child, result.get(key), change)
    for key, order in patch.items():
        name = key.removeprefix(_ORDER)
        if key != name and result.get(name):
            result[name] = _ordered(_merge_key(child_schema(schema, name) or {}), result[name], order)
    for key, removed in patch.items():
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            result[name] = [item for item in result.get(name) or [] if item not in removed]
    return result


def _merges(schema: Object) -> bool:
    """Whether a list of this schema merges under strategic patches."""
    return "merge" in str(schema.get("x-kubernetes-patch-strategy", ""))


def _merge_key(schema: Object) -> str:
    """The field by which a list's items are matched; "" for lists of scalars."""
    return str(schema.get("x-kubernetes-patch-merge-key", ""))


def _merged_list(schema: Object, value: list[Json], patch: list[Json]) -> list[Json]:
    """The items there were in their order, then the new ones."""
    key = _merge_key(schema)
    if not key:
        return value + [item for item in patch if item not in value]
    changes = [item for item in patch if isinstance(item, dict)]
    result = list(value)
    for change in changes:
        at = next((index for index, item in enumerate(result) if item.get(key) == change.get(key)), None)
        if change.get(_DIRECTIVE) == "delete":
            result = [item for item in result if item.get(key) != change.get(key)]
        elif at is None:
            result.append(_merged_by(schema["items"], {}, change))
        else:
            result[at] = _merged_by(schema["items"], result[at], change)
    return result


def _ordered(key: str, items: list[Json], order: list[Json]) -> list[Json]:
    """The items in the order of `order`, then those that it does not have."""

    def identity(item: Json) -> Json:
        return item.get(key) if key and isinstance(item, dict) else item

    wanted = [identity(entry) for entry in order]
    return sorted(
        items, key=lambda item: wanted.index(identity(item)) if identity(item) in wanted else len(wanted)
    )
