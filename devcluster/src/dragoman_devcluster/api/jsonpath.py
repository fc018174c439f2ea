"""The part of JSONPath that printed columns use: fields, quoted fields, indices, `[*]` and `[?(@.a=="b")]`.

Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache

from dragoman_devcluster.api.objects import Json

Step = Callable[[Json], list[Json]]

_TOKEN = re.compile(
    r"""\.(?P<field>(?:\\.|[^.\[\]\\])+)            # .name, .a\.b
      | \[(?P<quote>['"])(?P<quoted>.*?)(?P=quote)\] # ['name']
      | \[(?P<index>-?\d+)\]
      | \[(?P<all>\*)\]
      | \[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?P<operator>==|!=)\s*(?P<literal>.+?)\s*\)\]""",
    re.VERBOSE,
)


class JsonPathError(ValueError):
    """A JSONPath outside the part that is read here."""


@lru_cache(maxsize=512)
def compiled(path: str) -> Step:
    """A function from a value to what the path finds in it; JsonPathError if it cannot be read."""
    steps: list[Step] = []
    at = 0
    text = path if path.startswith((".", "[")) else f".{path}"
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise JsonPathError(f"cannot read the JSONPath {path!r} from {text[at:]!r} on")
        steps.append(_step(token))
        at = token.end()

    def find(value: Json) -> list[Json]:
        found = [value]
        for step in steps:
            found = [result for item in found for result in step(item)]
        return found

    return find


def _step(token: re.Match[str]) -> Step:
    if token["index"] is not None:
        index = int(token["index"])
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else []
    if token["all"]:
        return _items
    if token["operator"]:
        wanted, equal = _literal(token["literal"]), token["operator"] == "=="
        find = compiled(token["path"])
        return lambda value: [item for item in _items(value) if (wanted in find(item)) == equal]
    name = token["quoted"] if token["quote"] else re.sub(r"\\(.)", r"\1", token["field"])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else []


def _items(value: Json) -> list[Json]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _literal(text: str) -> Json:
    return text[1:-1] if text[:1] in "'\"" else json.loads(text)
