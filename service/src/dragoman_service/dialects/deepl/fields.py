"""The fields of a DeepL request, wherever they stand: JSON, a form, or the address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

import pydantic_core
from starlette.requests import Request

from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError
from dragoman_service.dialects.deepl.errors import UriTooLongError, missing, unsupported
from dragoman_service.dialects.queries import bound_fields

FORM = "application/x-www-form-urlencoded"

MOST_FORM_FIELDS = 10_000

MOST_QUERY_BYTES = 8 * 1024

FLAGS = {"1": True, "true": True, "0": False, "false": False}


@dataclass(frozen=True)
class Fields:
    """Fields by name; those that are null or, in a form, empty count as not there.

    Args:
        values: Of JSON any value, of a form or an address the list of its strings.
        is_form: Whether lists are one field many times, and not a list.
    """

    values: Mapping[str, Any]
    is_form: bool = False

    def text(self, name: str) -> str | None:
        """A string, or None where it is not there.

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
        """A string that has to be there.

        Raises:
            InvalidFieldError: It is not, or is something else.
        """
        found = self.text(name)
        if found is None:
            raise missing(name)
        return found

    def texts(self, name: str) -> list[str]:
        """A list of strings, each as it is; empty where it is not there.

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
        """One of some words, in any casing, or of some digits, or None where it is not there.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        found = str(value) if isinstance(value, int) else self.text(name)
        if found is not None and found.lower() not in among:
            raise unsupported(name)
        return None if found is None else found.lower()

    def flag(self, name: str) -> bool | None:
        """Yes or no, or None where it is not there.

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
        """A list of objects, or None where it is not there.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise unsupported(name)
        return [Fields(item) for item in value]


def fields_of(request: Request, body: bytes) -> Fields:
    """A request's fields.

    Args:
        request: Its headers say how the body is written; a body that does not say is JSON.
        body: All of it; where there is none, the fields are those of the address.

    Raises:
        MalformedRequestError: The body is not what it says it is.
    """
    if not body:
        bound_fields(request)
        return _form(request.url.query)
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
        return _json(body)
    try:
        return _form(body.decode())
    except UnicodeDecodeError:
        raise MalformedRequestError("the form is not UTF-8") from None


def bound_query(request: Request) -> None:
    """Refuse an address that is too long.

    Raises:
        UriTooLongError: It is.
    """
    if len(request.scope["query_string"]) > MOST_QUERY_BYTES:
        raise UriTooLongError(f"the address has more than {MOST_QUERY_BYTES} bytes; send a body instead")


def _json(body: bytes) -> Fields:
    try:
        found = pydantic_core.from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidFieldError("the body must be a JSON object")
    return Fields(found)


def _form(encoded: str) -> Fields:
    try:
        pairs = parse_qsl(
            encoded, keep_blank_values=True, errors="strict", max_num_fields=MOST_FORM_FIELDS, separator="&"
        )
    except UnicodeDecodeError:
        raise MalformedRequestError("the form is not UTF-8") from None
    except ValueError:
        raise MalformedRequestError(f"the form has more than {MOST_FORM_FIELDS} fields") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return Fields(values, is_form=True)
