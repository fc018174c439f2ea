"""A request's fields, however it carries them: JSON, a form of either kind, or the query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import pydantic_core
from python_multipart import create_form_parser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, parse_options_header
from starlette.requests import Request

from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError
from dragoman_service.dialects.bodies import decoded
from dragoman_service.dialects.queries import bound_fields

MULTIPART = b"multipart/form-data"
URLENCODED = b"application/x-www-form-urlencoded"

MOST_FIELDS = 4096
"""A form with more is no form of these."""

MOST_FILES = 16


@dataclass(frozen=True)
class Upload:
    """A file that came with a form."""

    name: str
    content: bytes


@dataclass(frozen=True)
class Fields:
    """What a request says.

    Args:
        values: By name: whatever JSON has, or for forms and queries a string, a list of them if repeated.
        files: By name.
        is_json: Whether it came as JSON.
    """

    values: Mapping[str, Any]
    files: Mapping[str, Upload] = field(default_factory=dict)
    is_json: bool = False

    def text(self, name: str) -> str:
        """A field of one string, empty where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if isinstance(value, list) and not self.is_json:
            value = value[0]
        if not isinstance(value, str | None):
            raise InvalidFieldError(f"Invalid request: {name} parameter is not a string")
        return value or ""

    def required(self, name: str) -> str:
        """A field of one string that has to be there.

        Raises:
            InvalidFieldError: It is not, or is something else.
        """
        value = self.text(name)
        if not value:
            raise missing(name)
        return value


def missing(name: str) -> InvalidFieldError:
    """The error for a field that has to be there."""
    return InvalidFieldError(f"Invalid request: missing {name} parameter")


def read_fields(request: Request, body: bytes) -> Fields:
    """What a request says.

    Args:
        request: Its query and content type; a query wins over a form, and JSON over a query.
        body: All of it.

    Raises:
        MalformedRequestError: It cannot be read.
    """
    bound_fields(request)
    declared = request.headers.get("content-type", "")
    media, _ = parse_options_header(declared.encode("latin-1"))
    if media == MULTIPART:
        values, files = _multipart(declared, body)
        return Fields({**values, **_urlencoded(_query(request))}, files)
    if is_json(media, body):
        return Fields(_json(body), is_json=True)
    return Fields({**_urlencoded(body), **_urlencoded(_query(request))})


def is_json(media: bytes, body: bytes) -> bool:
    """Whether a body is JSON, by its type, or by its looks where `curl -d` has called it a form."""
    return media == b"application/json" or media.endswith(b"+json") or body.lstrip()[:1] == b"{"


def _query(request: Request) -> bytes:
    return bytes(request.scope.get("query_string", b""))


def _json(body: bytes) -> dict[str, Any]:
    try:
        said = pydantic_core.from_json(body)
    except ValueError as error:
        raise MalformedRequestError(f"the body is not JSON: {error}") from None
    if not isinstance(said, dict):
        raise MalformedRequestError("Invalid JSON format")
    return said


def _urlencoded(form: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(decoded(form), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except UnicodeDecodeError:
        raise MalformedRequestError("the form is not UTF-8") from None
    except ValueError:
        raise MalformedRequestError(f"the form has more than {MOST_FIELDS} fields") from None
    return _gathered(pairs)


def _gathered(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Repeated fields as lists; line ends as texts have them, not as forms do."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        text = value.replace("\r\n", "\n")
        if name not in values:
            values[name] = text
        elif isinstance(values[name], list):
            values[name].append(text)
        else:
            values[name] = [values[name], text]
    return values


def _multipart(declared: str, body: bytes) -> tuple[dict[str, Any], dict[str, Upload]]:
    pairs: list[tuple[str, str]] = []
    files: dict[str, Upload] = {}

    def on_field(found: Field) -> None:
        if len(pairs) >= MOST_FIELDS:
            raise MalformedRequestError(f"the form has more than {MOST_FIELDS} fields")
        pairs.append((decoded(found.field_name or b""), decoded(found.value or b"")))

    def on_file(found: File) -> None:
        found.file_object.seek(0)
        name = decoded(found.field_name or b"")
        if len(files) >= MOST_FILES:
            raise MalformedRequestError(f"the form has more than {MOST_FILES} files")
        files[name] = Upload(decoded(found.file_name or b""), found.file_object.read())
        found.close()

    settings = {"MAX_MEMORY_FILE_SIZE": len(body) + 1}
    try:
        parser = create_form_parser(
            {"Content-Type": declared.encode("latin-1")}, on_field, on_file, config=settings
        )
        parser.write(body)
        parser.finalize()
    except FormParserError as error:
        raise MalformedRequestError(f"the form cannot be read: {error}") from None
    return _gathered(pairs), files
