"""What the APIs that are not in `dragoman_protocols` yet have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from dragoman_contract.languages import MOST_TAG_CHARS
from dragoman_protocols import api
from dragoman_protocols.api import Answer, Api, Need, Peek, Site
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError, UnknownLanguageError
from dragoman_protocols.forms import FieldValues
from dragoman_protocols.languages import canonical
from dragoman_protocols.multipart import Upload

Fields = FieldValues

AUTO = frozenset({"", "auto"})
"""Source languages that stand for "find out"."""


@dataclass(slots=True)
class Request(api.Request):
    """One request, its body read.

    Args:
        client: Address of the caller.
        raw_path: The path as it came, without the prefix that names a deployment.
        deployment: `NAMESPACE/NAME` where one was asked for by name.
        key_name: Name of the API key, once it was found.
    """

    client: str = ""
    raw_path: bytes = b""
    deployment: str | None = None
    key_name: str | None = None


def peeked(
    targets: tuple[str, ...] = (),
    source: str | None = None,
    texts: tuple[str, ...] = (),
    model: str | None = None,
    sample: str = "",
    glossary_ids: tuple[str, ...] = (),
) -> Peek:
    """What a request of an API that is not in `dragoman_protocols` yet asks for."""
    needs = (Need(source, targets, texts),) if targets else ()
    characters = sum(map(len, texts)) * max(1, len(targets))
    return Peek(needs, characters, model, glossary_ids, sample)


class Dialect(Api, Protocol):
    """One API that is not in `dragoman_protocols` yet."""

    def read(self, request: api.Request) -> Peek:
        """What a translation request asks for.

        Raises:
            CallerError: It cannot be told.
        """

    def languages(self, request: api.Request, site: Site, /) -> Answer:
        """What can be translated into what."""


def answer(status: int, document: object, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    """A JSON answer."""
    return Answer(status, json.dumps(document, ensure_ascii=False).encode(), headers)


def form(request: api.Request) -> Fields:
    """The fields of a form's body and of the query together, as web frameworks give them."""
    return {**request.query_fields(), **request.form_fields()}


def uploaded(request: api.Request) -> Upload:
    """The form that brought a file.

    Raises:
        MalformedRequestError: There was none.
    """
    if request.upload is None:
        raise MalformedRequestError("the body is no form with a file; send multipart/form-data")
    return request.upload


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
    try:
        return canonical(text)
    except UnknownLanguageError:
        raise _no_tag(text, name) from None


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
