"""Values as CEL rules see them: typed by the schema, unknown fields out of sight.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel and k8s.io/apiserver/pkg/cel/escaping.go
"""

from __future__ import annotations

import datetime
import re

from dragoman_devcluster.api.objects import Json, Object, parse_timestamp
from dragoman_kube.times import duration_s

_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip


def cel_value(schema: Object, value: Json, *, root: bool = False) -> Json:
    """The value for a rule on this schema; `root` hides the metadata but for the names."""
    if value is None:
        return None
    if isinstance(value, dict):
        return _object(schema, value, root=root)
    if isinstance(value, list):
        return [cel_value(schema.get("items") or {}, item) for item in value]
    if schema.get("type") == "number" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if schema.get("format") in ("date-time", "duration") and isinstance(value, str):
        parsed = parse_timestamp(value) if schema["format"] == "date-time" else parse_duration(value)
        return value if parsed is None else parsed
    return value


def _object(schema: Object, value: Object, *, root: bool) -> Object:
    properties = schema.get("properties") or {}
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict) or (additional and not properties):
        inner = additional if isinstance(additional, dict) else {}
        return {key: cel_value(inner, item) for key, item in value.items()}
    seen = {
        escaped(key): cel_value(child, value[key])
        for key, child in properties.items()
        # A null is an absent field unless the schema makes it nullable.
        if key in value and (value[key] is not None or child.get("nullable")) and key != "metadata"
    }
    if root or schema.get("x-kubernetes-embedded-resource"):
        metadata = value.get("metadata") or {}
        seen["metadata"] = {key: metadata[key] for key in ("name", "generateName") if key in metadata}
        seen |= {key: value[key] for key in ("apiVersion", "kind") if key in value}
    elif "metadata" in properties and "metadata" in value:
        seen["metadata"] = cel_value(properties["metadata"], value["metadata"])
    return seen


def escaped(name: str) -> str:
    """A field's name as rules spell it."""
    if name in _RESERVED:
        return f"__{name}__"
    escapes = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
    return re.sub(r"__|\.|-|/", lambda found: escapes[found[0]], name)


def parse_duration(text: str) -> datetime.timedelta | None:
    """A Go duration such as `1m30s`; None if it is none."""
    try:
        return datetime.timedelta(seconds=duration_s(text))
    except ValueError:
        return None
