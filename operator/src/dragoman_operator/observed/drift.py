"""Whether an object still says what we wrote."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_contract.kubernetes import GROUP
from dragoman_operator.api.fields import amount

APPLIED = f"{GROUP}/applied"
"""Annotation with the digest of the manifest that was applied last: fields that a newer one leaves out would
not be missed otherwise."""

_KEYS = ("name", "mountPath", "uid")
"""Fields that identify an item in the lists that the API merges by key. Ports of containers and Services are
merged by number and protocol; ours have names as well."""

_AMOUNTS = frozenset({"limits", "requests"})
_QUANTITIES = frozenset({"sizeLimit", "averageValue"})


@dataclass(frozen=True)
class Applied:
    """What the API server made of a manifest that it was given: a webhook may rewrite any field of it."""

    manifest: Mapping[str, Any]
    made: Mapping[str, Any]


def signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its digest in the annotation `APPLIED`."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: digest}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def holds(observed: Any, wanted: Any) -> bool:
    """Whether `observed` says everything that `wanted` says; what it says beyond is not ours.

    Kubernetes fills in defaults, drops what is empty and writes quantities in its own way; none of that is
    drift. Lists whose items have a key are compared by key, as server-side apply merges them; all others must
    agree item by item.

    Args:
        observed: A value of the API server.
        wanted: The same value of our manifest.
    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
    """
    if isinstance(wanted, Mapping):
        if not isinstance(observed, Mapping):
            return not wanted and observed is None
        return all(_field_holds(key, observed.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, Sequence) and not isinstance(wanted, str):
        return _list_holds(observed if observed is not None else [], wanted)
    return bool(observed == wanted) or (observed is None and wanted in ("", None))


def as_made(made: Any, wanted: Any) -> Any:
    """The fields of `wanted`, with the values that they have in `made`.

    Args:
        made: A value of the API server.
        wanted: The same value of our manifest.
    """
    if isinstance(wanted, Mapping) and isinstance(made, Mapping):
        return {key: as_made(made.get(key), value) for key, value in wanted.items()}
    if isinstance(wanted, list) and isinstance(made, list):
        key = _key_of(wanted)
        if key is not None:
            found = {item[key]: item for item in made if _has(item, key)}
            return [as_made(found[item[key]], item) for item in wanted if item[key] in found] or made
        if len(made) == len(wanted):
            return list(map(as_made, made, wanted))
    return made


def _field_holds(key: str, observed: Any, wanted: Any) -> bool:
    if key in _AMOUNTS and isinstance(wanted, Mapping) and isinstance(observed, Mapping):
        return all(_same_amount(observed.get(name), quantity) for name, quantity in wanted.items())
    if key in _QUANTITIES:
        return _same_amount(observed, wanted)
    return holds(observed, wanted)


def _list_holds(observed: Any, wanted: Sequence[Any]) -> bool:
    if not isinstance(observed, Sequence) or isinstance(observed, str):
        return False
    key = _key_of(wanted)
    if key is None:
        return len(observed) == len(wanted) and all(map(holds, observed, wanted))
    # Two of the same key, where the API merges by another: neither is surely ours.
    found: dict[Any, list[Any]] = {}
    for item in observed:
        if _has(item, key):
            found.setdefault(item[key], []).append(item)
    return all(len(found.get(item[key], ())) == 1 and holds(found[item[key]][0], item) for item in wanted)


def _key_of(wanted: Sequence[Any]) -> str | None:
    """The field that identifies the items; None where they are identified by their position."""
    return next((key for key in _KEYS if wanted and all(_has(item, key) for item in wanted)), None)


def _has(item: Any, key: str) -> bool:
    return isinstance(item, Mapping) and key in item


def _same_amount(observed: Any, wanted: Any) -> bool:
    try:
        return amount(observed) == amount(wanted)
    except (TypeError, ValueError):
        return bool(observed == wanted)
