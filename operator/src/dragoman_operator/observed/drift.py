"""Whether an object still has the values that the operator applied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_contract.kubernetes import GROUP
from dragoman_kube.quantity import parse

APPLIED = f"{GROUP}/applied"
"""Annotation with the digest of the last applied manifest, to detect fields that a newer manifest leaves out."""

_KEYS = ("name", "mountPath", "uid")
"""Fields that identify an item in the lists that the API merges by key. Ports of containers and Services are
merged by number and protocol; those of the operator have names as well."""

_AMOUNTS = frozenset({"limits", "requests"})
_QUANTITIES = frozenset({"sizeLimit", "averageValue"})


@dataclass(frozen=True)
class Applied:
    """An applied manifest and its stored form: webhooks may rewrite any field."""

    manifest: Mapping[str, Any]
    made: Mapping[str, Any]


def digest(value: Mapping[str, Any]) -> str:
    """Digest of a JSON object; 16 hexadecimal digits."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def signed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with its digest in the annotation `APPLIED`."""
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), APPLIED: digest(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def is_superset(observed: Any, desired: Any) -> bool:
    """Whether `observed` has all values of `desired`; it may have more.

    Kubernetes adds defaults, removes empty fields and normalizes quantities; this is not drift. Lists whose items
    have a key are compared by key, as server-side apply merges them; others must be equal item by item.
    Source: https://kubernetes.io/docs/reference/using-api/server-side-apply/#merge-strategy
    """
    if isinstance(desired, Mapping):
        if not isinstance(observed, Mapping):
            return not desired and observed is None
        return all(_field_matches(key, observed.get(key), value) for key, value in desired.items())
    if isinstance(desired, Sequence) and not isinstance(desired, str):
        return _list_matches(observed if observed is not None else [], desired)
    return bool(observed == desired) or (observed is None and desired in ("", None))


def as_made(made: Any, desired: Any) -> Any:
    """The fields of `desired`, with their values in `made`."""
    if isinstance(desired, Mapping) and isinstance(made, Mapping):
        return {key: as_made(made.get(key), value) for key, value in desired.items()}
    if isinstance(desired, list) and isinstance(made, list):
        key = _key_of(desired)
        if key is not None:
            found = {item[key]: item for item in made if _has(item, key)}
            return [as_made(found[item[key]], item) for item in desired if item[key] in found] or made
        if len(made) == len(desired):
            return list(map(as_made, made, desired))
    return made


def _field_matches(key: str, observed: Any, desired: Any) -> bool:
    if key in _AMOUNTS and isinstance(desired, Mapping) and isinstance(observed, Mapping):
        return all(_same_amount(observed.get(name), quantity) for name, quantity in desired.items())
    if key in _QUANTITIES:
        return _same_amount(observed, desired)
    return is_superset(observed, desired)


def _list_matches(observed: Any, desired: Sequence[Any]) -> bool:
    if not isinstance(observed, Sequence) or isinstance(observed, str):
        return False
    key = _key_of(desired)
    if key is None:
        return len(observed) == len(desired) and all(map(is_superset, observed, desired))
    # Two items with this key, where the API merges by another one: ambiguous.
    found: dict[Any, list[Any]] = {}
    for item in observed:
        if _has(item, key):
            found.setdefault(item[key], []).append(item)
    return all(
        len(found.get(item[key], ())) == 1 and is_superset(found[item[key]][0], item) for item in desired
    )


def _key_of(desired: Sequence[Any]) -> str | None:
    """The field that identifies the items; None if they are identified by position."""
    return next((key for key in _KEYS if desired and all(_has(item, key) for item in desired)), None)


def _has(item: Any, key: str) -> bool:
    return isinstance(item, Mapping) and key in item


def _same_amount(observed: Any, desired: Any) -> bool:
    try:
        return parse(observed) == parse(desired)
    except (TypeError, ValueError):
        return bool(observed == desired)
