"""CEL expressions: compiled once, evaluated on values that are typed by their schema.

Source: https://kubernetes.io/docs/reference/using-api/cel/, k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel and
k8s.io/apiserver/pkg/cel/escaping.go
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache

import cel

from dragoman_devcluster.api.objects import Json, Object, parse_timestamp
from dragoman_kube.times import duration_s

_LITERAL = re.compile(r"""r?("{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", re.DOTALL)
_SIZE_CALL = re.compile(r"\bsize(?=\s*\()")
_BOUND = re.compile(r"\b(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,")
_SIZE = "dragoman_size"
"""What `size` is rewritten to: the package counts a string's bytes, CEL its code points."""

_FUNCTIONS = frozenset({
    _SIZE, "contains", "startsWith", "endsWith", "matches", "has", "all", "exists", "exists_one", "map",
    "filter", "string", "int", "uint", "double", "bool", "bytes", "dyn", "type", "duration", "timestamp",
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours",
    "getMinutes", "getSeconds", "getMilliseconds", "max", "min",
})  # fmt: skip
"""Functions of the CEL package. Those that Kubernetes adds are not supported."""

_RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip


class RuleError(ValueError):
    """A rule that does not compile, or that fails on a value."""


@lru_cache(maxsize=4096)
def compiled(source: str) -> Callable[[Json], Json]:
    """A function from `self` to the rule's result, which raises RuleError if it fails on a value.

    Raises RuleError for bad syntax, and for variables and functions that do not exist or are not supported.
    """
    try:
        program = cel.compile(_outside_literals(source, lambda text: _SIZE_CALL.sub(_SIZE, text)))
    except Exception as broken:
        raise RuleError(f"compilation failed: {broken}") from broken
    if "oldSelf" in program.variables():
        raise RuleError("the embedded API does not support oldSelf")
    bound = set(_BOUND.findall(_outside_literals(source, lambda text: text, literal='""')))
    for variable in program.variables():
        if variable not in ("self", *bound) and variable not in _FUNCTIONS:
            raise RuleError(f"compilation failed: undeclared reference to '{variable}' (in container '')")
    for function in program.functions():
        named = re.fullmatch(r"[A-Za-z_]\w*", function)
        operator = function.startswith("_") and function.endswith("_")
        if named and not operator and function not in _FUNCTIONS:
            message = f"undeclared reference to '{function}' (in container '')"
            raise RuleError(
                f"compilation failed: {message}; the embedded API has the standard functions only"
            )

    def evaluate(value: Json) -> Json:
        try:
            return program.execute(cel.Context(variables={"self": value}, functions={_SIZE: len}))
        except KeyError as failed:
            raise RuleError(f"no such key: {failed.args[0]}") from failed
        except Exception as failed:
            raise RuleError(str(failed)) from failed
        except BaseException as failed:  # A panic inside the package is no Exception.
            if isinstance(failed, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise RuleError("internal error") from failed

    return evaluate


def _outside_literals(source: str, change: Callable[[str], str], literal: str | None = None) -> str:
    """The source with `change` applied between its string literals, and those replaced if `literal` is given."""
    result, at = "", 0
    for found in _LITERAL.finditer(source):
        result += change(source[at : found.start()]) + (found[0] if literal is None else literal)
        at = found.end()
    return result + change(source[at:])


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
        parsed = parse_timestamp(value) if schema["format"] == "date-time" else _duration(value)
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


def _duration(text: str) -> datetime.timedelta | None:
    try:
        return datetime.timedelta(seconds=duration_s(text))
    except ValueError:
        return None
