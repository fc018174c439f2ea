"""What all dialects have in common: a request as it came, and what it asks for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import msgspec

from dragoman_contract.languages import is_tag
from dragoman_router.dialects.forms import fields_of
from dragoman_router.errors import InvalidFieldError, MalformedRequestError, RefusedError

T = TypeVar("T")

Headers = list[tuple[bytes, bytes]]
Fields = Mapping[str, list[str]]

MOST_FIELDS = 4096
"""Fields of a form: enough for every limit on texts, and a bound on what a hostile one costs."""
MOST_QUERY_FIELDS = 1024
"""Of a query, which is in the head and therefore short."""
MOST_VALUES = 4096
"""Members of arrays in a JSON body, together; more where it is so long that texts may look like them."""
BYTES_A_VALUE = 64
"""A body of `MOST_VALUES` times so many bytes or more may have one for each: 16,384 in a mebibyte, decoded in 3 ms."""
ENDS = (b'",', b"},", b"],")
"""Of a member that is no number."""
MOST_TAG_CHARS = 35
AUTO = frozenset({"", "auto"})
"""Source languages that stand for "find out"."""
JSON_TYPE = b"application/json"


@dataclass(frozen=True, slots=True)
class Upload:
    """What a form with a file says beside the file.

    Args:
        fields: Values by name, of those that a router looks at.
        sample: The beginning of the file where that is text, to detect its language by.
    """

    fields: Fields
    sample: str = ""


@dataclass(slots=True)
class Request:
    """One request, its body read.

    Args:
        method: Such as `POST`.
        path: Decoded, without the prefix that names a deployment.
        query: As it came.
        headers: Names in lower case.
        body: As it came.
        client: Address of the caller.
        raw_path: The path as it came, without that prefix.
        deployment: `NAMESPACE/NAME` where one was asked for by name.
        key_name: Name of the API key, once it was found.
        upload: What the form says that brought a file, where one was expected.
    """

    method: str
    path: str
    query: bytes
    headers: Headers
    body: bytes = b""
    client: str = ""
    raw_path: bytes = b""
    deployment: str | None = None
    key_name: str | None = None
    upload: Upload | None = None
    _parameters: Fields | None = field(default=None, init=False)
    _form: Fields | None = field(default=None, init=False)

    def header(self, name: bytes) -> bytes | None:
        """The first header of a name in lower case."""
        for known, value in self.headers:
            if known == name:
                return value
        return None

    def parameters(self) -> Fields:
        """The query's.

        Raises:
            MalformedRequestError: They are too many, or not UTF-8.
        """
        if self._parameters is None:
            self._parameters = fields_of(self.query, MOST_QUERY_FIELDS, "query")
        return self._parameters

    def form(self) -> Fields:
        """The body's, where it is a form.

        Raises:
            MalformedRequestError: They are too many, or not UTF-8.
        """
        if self._form is None:
            self._form = fields_of(self.body, MOST_FIELDS, "form") if self.is_form else {}
        return self._form

    @property
    def is_form(self) -> bool:
        """Whether the body is an HTML form; JSON that curl labelled as one is none."""
        if self.body.lstrip()[:1] in (b"{", b"["):
            return False
        kind = self.header(b"content-type")
        return kind is not None and kind.lower().startswith(b"application/x-www-form-urlencoded")


@dataclass(slots=True)
class Ask:
    """What a request asks for, as far as the router has to know.

    Args:
        targets: BCP-47 tags of the translations; empty where the pair does not matter.
        source: BCP-47 tag of the text; None where it has to be found out, or does not matter.
        texts: To detect the language by, and to count characters.
        sample: To detect the language by, beside them.
        model: Name of a deployment, in OpenAI's dialect.
        glossary_ids: Glossaries that it names, as far as the pod would take them.
        charged: Characters to charge for, where they are not those of all texts for each target.
    """

    targets: tuple[str, ...] = ()
    source: str | None = None
    texts: tuple[str, ...] = ()
    model: str | None = None
    sample: str = ""
    glossary_ids: tuple[str, ...] = ()
    charged: int | None = None

    @property
    def characters(self) -> int:
        """What it is charged for, as the pod counts it: of all texts together, for each target."""
        if self.charged is not None:
            return self.charged
        return sum(map(len, self.texts)) * max(1, len(self.targets))


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer of the router's own.

    Args:
        status: HTTP status.
        body: JSON, where `headers` say nothing else.
        headers: Beside Content-Length.
    """

    status: int
    body: bytes
    headers: Headers = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Served:
    """What all deployments serve together.

    Args:
        targets: Target tags by source tag, both sorted, without wildcards.
        models: Names of the deployments.
    """

    targets: Mapping[str, tuple[str, ...]]
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a key has used, and may use.

    Args:
        characters: Used.
        limit: May be used; None is without limit.
    """

    characters: int
    limit: int | None = None


class Dialect(Protocol):
    """One API."""

    name: str
    key_field: str | None
    """The field of a body in which its clients send their key; None where they do in a header or the query alone."""

    def read(self, request: Request) -> Ask:
        """What a translation request asks for.

        Raises:
            CallerError: It cannot be told.
        """

    def refuse(self, error: RefusedError) -> Answer:
        """An error as the dialect's clients expect it."""

    def languages(self, request: Request, served: Served, /) -> Answer:
        """What can be translated into what."""


def answer(status: int, document: object, headers: Headers | None = None) -> Answer:
    """A JSON answer."""
    return Answer(status, json.dumps(document, ensure_ascii=False).encode(), headers or [])


def retry_after(error: RefusedError) -> Headers:
    """The header `Retry-After` where asking again is worth it."""
    seconds = getattr(error, "retry_after_s", None)
    return [] if seconds is None else [(b"retry-after", str(seconds).encode())]


def decoded(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The fields that the router needs of a JSON body; it goes through the others without keeping them.

    Raises:
        MalformedRequestError: It is not UTF-8 or not JSON.
        InvalidFieldError: A field is missing or of the wrong type.
    """
    most = max(MOST_VALUES, len(body) // BYTES_A_VALUE)
    if body.count(b",") > most:
        dense = body.translate(None, b" \t\r\n")
        if sum(map(dense.count, ENDS)) > most:
            raise MalformedRequestError(f"the body has more than {most} values; send less at once")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise InvalidFieldError(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedRequestError(f"the body is not JSON: {error}") from None


def form(request: Request) -> Fields:
    """The fields of a form's body and of the query together, as web frameworks give them."""
    return {**request.parameters(), **request.form()}


def uploaded(request: Request) -> Upload:
    """The form that brought a file.

    Raises:
        MalformedRequestError: There was none.
    """
    if request.upload is None:
        raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
    return request.upload


def first(fields: Fields, name: str) -> str | None:
    """The first value of a field."""
    values = fields.get(name)
    return values[0] if values else None


class Codes:
    """Language codes of a dialect's own.

    Args:
        tags: The BCP-47 tags that they stand for, by the code in lower case.
    """

    def __init__(self, tags: Mapping[str, str]) -> None:
        self.tags = tags


NO_CODES = Codes({})


def tag(code: str | None, name: str, own: Codes = NO_CODES) -> str:
    """A language code as a BCP-47 tag.

    Args:
        code: As the caller wrote it.
        name: The field, for the message.
        own: Codes of the dialect's own.

    Raises:
        InvalidFieldError: It is none.
    """
    text = (code or "").strip()
    if not text:
        raise InvalidFieldError(f"{name} is required")
    # Before it is remembered: what is kept of a caller's has to be short.
    if len(text) > MOST_TAG_CHARS:
        raise _no_tag(text, name)
    return _tag(text, name, own)


@lru_cache(maxsize=4096)
def _tag(code: str, name: str, own: Codes) -> str:
    text = code.replace("_", "-")
    text = own.tags.get(text.lower(), text)
    if not is_tag(text):
        raise _no_tag(text, name)
    return text


def _no_tag(text: str, name: str) -> InvalidFieldError:
    return InvalidFieldError(
        f'{name}: {text[:MOST_TAG_CHARS]!r} is no language tag; expected one such as "de"'
    )


def source_tag(code: str | None, name: str, own: Codes = NO_CODES) -> str | None:
    """The same for a source language; None where it has to be found out."""
    if code is None or code[: MOST_TAG_CHARS + 1].lower() in AUTO:
        return None
    return tag(code, name, own)


def texts_of(value: Any) -> tuple[str, ...]:
    """One text or several."""
    return (value,) if isinstance(value, str) else tuple(value)
