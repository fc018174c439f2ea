"""Field ownership of created objects: a later server-side apply should remove fields that it leaves out.

A create makes its client the owner by `Update` of what it sends. An apply of the same client removes only fields that
it owns by `Apply`, so the ownership is changed before.

Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#upgrading-from-client-side-apply-to-server-side-apply,
and client-go's k8s.io/client-go/util/csaupgrade, which does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any


def as_applied(found: Mapping[str, Any], manager: str) -> list[Mapping[str, Any]] | None:
    """The managedFields of an object in which all fields of a manager are owned by `Apply`; None if they are already.

    Fields of subresources stay.
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
