"""Kubernetes objects as plain JSON values, and how to reach into them."""

from __future__ import annotations

import datetime
from typing import Any, TypeAlias, cast

from dragoman_kube.times import parse_time

Json: TypeAlias = Any
"""Any JSON value; its schema decides what it is."""

Object: TypeAlias = dict[str, Any]
"""A JSON object. What the store holds is shared: copy before changing."""


def get(value: Json, *path: str, default: Json = None) -> Json:
    """The value at a path of keys, or `default` where a step is missing or no object."""
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return default
        value = value[step]
    return value


def metadata(obj: Object) -> Object:
    """The object's metadata, made if it is missing."""
    return cast(Object, obj.setdefault("metadata", {}))


def parse_timestamp(text: str | None) -> datetime.datetime | None:
    """A Kubernetes time, with or without fractions of a second; None for anything else."""
    try:
        return parse_time(text) if text else None
    except ValueError:
        return None
