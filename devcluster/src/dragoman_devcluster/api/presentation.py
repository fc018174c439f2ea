"""Representation of objects by `Accept`: whole, metadata only, or as a Table.

The JSONPath of a custom resource's columns has fields, quoted fields, indices, `[*]` and `[?(@.a=="b")]`.
Source: https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dragoman_devcluster.api.kinds import Column, Kind
from dragoman_devcluster.api.objects import Json, Object
from dragoman_devcluster.api.rows import AGE_ONLY, FORMS, TableForm, age

_META = "meta.k8s.io/v1"
_NAME = Column("Name", "string", "", format="name", description="Name must be unique within a namespace.")
_DEFAULT_CUSTOM = (Column("Age", "date", ".metadata.creationTimestamp"),)


@dataclass(frozen=True)
class Presentation:
    """One way to show objects of a kind: `form` is "full", "partial" or "table"."""

    kind: Kind
    clock: Callable[[], datetime.datetime]
    form: str = "full"
    include_object: str = "Metadata"

    def single(self, obj: Object) -> Object:
        """One object."""
        if self.form == "table":
            return self._table([obj], obj.get("metadata", {}).get("resourceVersion", ""), with_columns=True)
        if self.form == "partial":
            return _partial(obj)
        return {**obj, "kind": self.kind.name, "apiVersion": self.kind.api_version}

    def listed(self, objects: Sequence[Object], version: int) -> Object:
        """A list as of a resourceVersion."""
        if self.form == "table":
            return self._table(objects, str(version), with_columns=True)
        partial = self.form == "partial"
        return {
            "kind": "PartialObjectMetadataList" if partial else self.kind.listed_as,
            "apiVersion": _META if partial else self.kind.api_version,
            "metadata": {"resourceVersion": str(version)},
            "items": [self.single(obj) for obj in objects],
        }

    def stream(self) -> Callable[[Object], Object]:
        """A function that renders the objects of one watch; only its first table has the columns' definitions."""
        if self.form != "table":
            return self.single
        first = True

        def render(obj: Object) -> Object:
            nonlocal first
            table = self._table([obj], obj["metadata"].get("resourceVersion", ""), with_columns=first)
            first = False
            return table

        return render

    def _table(self, objects: Sequence[Object], version: str, *, with_columns: bool) -> Object:
        form = self._form()
        columns = (_NAME, *form.columns) if form.named else form.columns
        return {
            "kind": "Table",
            "apiVersion": _META,
            "metadata": {"resourceVersion": version},
            "columnDefinitions": [_definition(column) for column in columns] if with_columns else None,
            # A bookmark has no object to make a row of.
            "rows": [self._row(form, obj) for obj in objects if obj["metadata"].get("name")],
        }

    def _form(self) -> TableForm:
        if not self.kind.custom:
            return FORMS.get(self.kind.resource, AGE_ONLY)
        columns = self.kind.columns or _DEFAULT_CUSTOM
        return TableForm(columns, lambda obj, now: [_cell(column, obj, now) for column in columns])

    def _row(self, form: TableForm, obj: Object) -> Object:
        cells = form.row(obj, self.clock())
        row: Object = {"cells": [obj["metadata"]["name"], *cells] if form.named else cells}
        if self.include_object == "Object":
            row["object"] = {**obj, "kind": self.kind.name, "apiVersion": self.kind.api_version}
        elif self.include_object == "Metadata":
            row["object"] = _partial(obj)
        return row


def _partial(obj: Object) -> Object:
    return {"kind": "PartialObjectMetadata", "apiVersion": _META, "metadata": obj["metadata"]}


def _definition(column: Column) -> Object:
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": column.description or column.name,
        "priority": column.priority,
    }


def _cell(column: Column, obj: Object, now: datetime.datetime) -> Json:
    """What a custom column shows: the first thing that its path finds."""
    try:
        found = list(compiled(column.path)(obj))
    except JsonPathError:
        return None
    if not found or found[0] is None:
        return None
    value = found[0]
    match column.type:
        case "date":
            return age(value, now)
        case "integer" if isinstance(value, float):
            return int(value)
        case "string" if not isinstance(value, str | int | float | bool):
            return str(value)
        case "string":
            return str(value).lower() if isinstance(value, bool) else str(value)
    return value


def presentation(
    accept: str, kind: Kind, include_object: str, clock: Callable[[], datetime.datetime]
) -> Presentation:
    """The first form of an Accept header that is supported."""
    for wanted in accept.split(","):
        media_type, *parameters = (part.strip() for part in wanted.split(";"))
        if media_type != "application/json":
            continue
        given = dict(parameter.partition("=")[::2] for parameter in parameters)
        if "as" not in given:
            break
        if given.get("g") == "meta.k8s.io" and given.get("v") == "v1":
            if given["as"] == "Table":
                return Presentation(kind, clock, "table", include_object)
            if given["as"] in ("PartialObjectMetadata", "PartialObjectMetadataList"):
                return Presentation(kind, clock, "partial", include_object)
    return Presentation(kind, clock)


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
