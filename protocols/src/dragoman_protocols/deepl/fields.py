"""The fields of a DeepL request, wherever they are: in JSON, a form, or the query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dragoman_protocols.bodies import read_json
from dragoman_protocols.deepl.errors import UriTooLongError, missing, unsupported
from dragoman_protocols.messages import Request

MAX_QUERY_BYTES = 8 * 1024

_OBJECT = msgspec.json.Decoder(dict[str, Any])

_MEMBER = re.compile(r"(\w+)\[([0-9]{1,3})\]\.(\w+)")
"""Name of a field of an object in a list, as DeepL's SDKs write it in forms: `dictionaries[0].entries`."""

FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class Fields:
    """Fields by name; those that are null or, in a form, empty count as missing.

    Args:
        values: Of JSON any value, of a form or a query the list of its strings.
        is_form: Whether a list is one field that was sent several times.
    """

    values: Mapping[str, Any]
    is_form: bool = False

    def text(self, name: str) -> str | None:
        """A string, or None where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if self.is_form and value is not None:
            value = value[-1]
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise unsupported(name)
        return value

    def required(self, name: str) -> str:
        """A required string.

        Raises:
            InvalidFieldError: It is missing, or something else.
        """
        found = self.text(name)
        if found is None:
            raise missing(name)
        return found

    def texts(self, name: str) -> list[str]:
        """A list of strings, each as it is; empty where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise unsupported(name)
        return value

    def names(self, name: str) -> list[str]:
        """Names in a list, or in strings with commas between them.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        listed = [value] if isinstance(value, str) else self.texts(name)
        return [part.strip() for item in listed for part in item.split(",") if part.strip()]

    def choice(self, name: str, among: Iterable[str]) -> str | None:
        """One of some words, in any casing, or of some digits, or None where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        found = str(value) if isinstance(value, int) else self.text(name)
        if found is not None and found.lower() not in among:
            raise unsupported(name)
        return None if found is None else found.lower()

    def flag(self, name: str) -> bool | None:
        """Yes or no, or None where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            value = str(value)
        elif self.is_form or value is None:
            value = self.text(name)
        if value is None:
            return None
        if not isinstance(value, str) or value.lower() not in FLAGS:
            raise unsupported(name)
        return FLAGS[value.lower()]

    def objects(self, name: str) -> list[Fields] | None:
        """A list of objects, or None where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return self._indexed(name) if self.is_form else None
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise unsupported(name)
        return [Fields(item) for item in value]

    def _indexed(self, name: str) -> list[Fields] | None:
        """The objects of a form, in the order of their indices."""
        found: dict[int, dict[str, Any]] = {}
        for key, value in self.values.items():
            if (match := _MEMBER.fullmatch(key)) and match[1] == name:
                found.setdefault(int(match[2]), {})[match[3]] = value
        return [Fields(found[index], is_form=True) for index in sorted(found)] or None


def fields_of(request: Request) -> Fields:
    """A request's fields: those of the query where there is no body, else those of the form or the JSON object.

    Raises:
        MalformedRequestError: The body is not what its Content-Type says; without one it is JSON.
        InvalidFieldError: It is JSON, but not an object.
    """
    if not request.body:
        return Fields(request.query_fields(), is_form=True)
    if request.is_form:
        return Fields(request.form_fields(), is_form=True)
    values: dict[str, Any] = read_json(request.body, _OBJECT)
    return Fields(values)


def bounded_fields(request: Request) -> Fields:
    """The same for a request other than for a translation, whose query may only be short.

    Raises:
        UriTooLongError: The query is too long.
    """
    if len(request.query) > MAX_QUERY_BYTES:
        raise UriTooLongError(f"the query has more than {MAX_QUERY_BYTES} bytes; send a body instead")
    return fields_of(request)
