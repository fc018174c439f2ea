"""One rule: compiled once, checked for what it names, evaluated on values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cel

from dragoman_devcluster.api.cel_rules.library import FUNCTIONS, SIZE, STANDARD
from dragoman_devcluster.api.cel_rules.values import escaped
from dragoman_devcluster.api.objects import Json, Object

_LITERAL = re.compile(r"""r?("{3}.*?"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""", re.DOTALL)
_SIZE_CALL = re.compile(r"\bsize(?=\s*\()")
_BOUND = re.compile(r"\b(?:all|exists|exists_one|map|filter)\(\s*(\w+)\s*,")
_SELF_PATH = re.compile(r"\b(?:self|oldSelf)((?:\.\w+)+)(\s*\()?")
_WITHOUT_FIELDS = ("string", "integer", "number", "boolean", "array")


class RuleError(ValueError):
    """A rule that does not compile, or that fails on a value."""


@dataclass(frozen=True)
class Rule:
    """A compiled expression. `needs_old`: it compares with the value before an update."""

    source: str
    program: Any
    needs_old: bool

    def evaluate(self, value: Json, old: Json) -> Json:
        """The expression's result; RuleError if it fails on these values."""
        context = cel.Context(variables={"self": value, "oldSelf": old}, functions=FUNCTIONS)
        try:
            return self.program.execute(context)
        except Exception as failed:
            raise RuleError(_told(failed)) from failed
        except BaseException as failed:  # A panic inside the package is no Exception.
            if isinstance(failed, KeyboardInterrupt | SystemExit | GeneratorExit):
                raise
            raise RuleError("internal error") from failed


def _told(failed: Exception) -> str:
    return f"no such key: {failed.args[0]}" if isinstance(failed, KeyError) else str(failed)


@lru_cache(maxsize=4096)
def compiled(source: str) -> Rule:
    """Compile a rule; RuleError for bad syntax and for variables and functions that do not exist."""
    rewritten = _outside_literals(source, lambda text: _SIZE_CALL.sub(SIZE, text))
    try:
        program = cel.compile(rewritten)
    except Exception as broken:
        raise RuleError(f"compilation failed: {broken}") from broken
    bare = _outside_literals(source, lambda text: text, literal='""')
    bound = set(_BOUND.findall(bare))
    for variable in program.variables():
        if variable not in ("self", "oldSelf", "optional", *bound) and variable not in STANDARD:
            raise RuleError(f"compilation failed: undeclared reference to '{variable}' (in container '')")
    for function in program.functions():
        if re.fullmatch(r"[A-Za-z_]\w*", function) and function not in FUNCTIONS and function not in STANDARD:
            if function.startswith("_") and function.endswith("_"):
                continue  # An operator.
            raise RuleError(f"compilation failed: undeclared reference to '{function}' (in container '')")
    return Rule(source, program, "oldSelf" in program.variables())


def check_fields(source: str, schema: Object, *, root: bool) -> None:
    """RuleError if a rule reads a field below `self` that its schema does not have."""
    for path, called in _SELF_PATH.findall(_outside_literals(source, lambda text: text, literal='""')):
        names = path.strip(".").split(".")
        at: Object = schema
        for name in names[:-1] if called else names:
            if root and at is schema and name in ("metadata", "apiVersion", "kind"):
                break
            properties = {escaped(key): child for key, child in (at.get("properties") or {}).items()}
            additional = at.get("additionalProperties")
            if name in properties:
                at = properties[name]
            elif isinstance(additional, dict):
                at = additional
            elif at.get("type") in _WITHOUT_FIELDS:
                raise RuleError(f"compilation failed: type '{at['type']}' does not support field selection")
            elif at.get("x-kubernetes-embedded-resource") or not at.get("type"):
                break  # Whatever it is, its fields are not known here.
            else:
                raise RuleError(f"compilation failed: undefined field '{name}'")


def _outside_literals(source: str, change: Any, literal: str | None = None) -> str:
    """The source with `change` applied between its string literals, and those replaced if `literal` is given."""
    result, at = "", 0
    for found in _LITERAL.finditer(source):
        result += change(source[at : found.start()]) + (found[0] if literal is None else literal)
        at = found.end()
    return result + str(change(source[at:]))
