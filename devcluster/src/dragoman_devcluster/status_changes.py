"""Comparison of statuses, so that only changes are written."""

from __future__ import annotations

from typing import Any

from dragoman_kube.objects import Manifest


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
