"""JSON patch and merge patch.

Source: RFC 6902 and RFC 7386.
"""

from __future__ import annotations

from typing import cast

import jsonpatch

from dragoman_devcluster.api.errors import BadRequestError, InvalidError
from dragoman_devcluster.api.objects import Json, Object, copied

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


def json_patch(obj: Object, operations: Json) -> Object:
    """The object after a JSON patch; BadRequestError if it is none, InvalidError if it does not apply."""
    if not isinstance(operations, list):
        raise BadRequestError("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
    try:
        return cast(Object, jsonpatch.apply_patch(obj, operations))
    except jsonpatch.InvalidJsonPatch as broken:
        raise BadRequestError(f"the JSON patch cannot be read: {broken}") from broken
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as failed:
        raise InvalidError(
            f"the server rejected our request due to an error in our request: {failed}"
        ) from failed


def merge_patch(obj: Object, patch: Json) -> Object:
    """The object after a merge patch: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        raise BadRequestError("a merge patch has to be an object")
    return cast(Object, _merged(copied(obj), patch))


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
