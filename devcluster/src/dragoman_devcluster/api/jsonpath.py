"""The JSONPath of printed columns: fields, quoted fields, indices, `[*]` and `[?(@.a=="b")]`.

Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from dragoman_devcluster.api.objects import Json

Step = Callable[[Json], Iterable[Json]]

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
        return lambda value: value[index : index + 1 or None] if isinstance(value, list) else ()
    if token["all"]:
        return lambda value: (
            value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else ()
        )
    if token["operator"]:
        return _filter(token["path"], token["operator"] == "==", token["literal"])
    name = token["quoted"] if token["quote"] else re.sub(r"\\(.)", r"\1", token["field"])
    return lambda value: [value[name]] if isinstance(value, dict) and name in value else ()


def _filter(path: str, equal: bool, literal: str) -> Step:
    wanted = literal[1:-1] if literal[:1] in "'\"" else json.loads(literal)
    find = compiled(path)

    def step(value: Json) -> list[Json]:
        items = value if isinstance(value, list) else []
        return [item for item in items if (wanted in find(item)) == equal]

    return step
