"""DeepL v2: `POST /v2/translate` as JSON or form, `/v2/document`.

Source: https://github.com/DeepLcom/openapi
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman_protocols import errors
from dragoman_protocols.api import Answer, Peek, Request, Site
from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import InvalidFieldError, RequestError, headers_of
from dragoman_protocols.forms import first
from dragoman_protocols.native import ERRORS as STATUSES
from dragoman_router.dialects.asking import answer, form, peeked, source_tag, tag, texts_of, uploaded
from dragoman_router.dialects.names import english

NO_LIMIT = 1_000_000_000_000
"""What DeepL's own unlimited keys are told as their limit; clients divide by it."""
QUOTA_EXCEEDED = 456
MOST_GLOSSARIES = 5
"""In one request: as many as pods take."""
NULL = msgspec.Raw(b"null")
NO_NAME = 0
"""Stands for a value that names no glossaries."""


class Body(msgspec.Struct):
    """Fields of a JSON body."""

    text: str | list[str] | None = None
    target_lang: str | None = None
    source_lang: str | None = None
    glossary_id: Any = None
    glossary_ids: Any = None


class JsonBody(Body):
    """The same, with the glossaries as they came: what a pod refuses in them is not made into objects here."""

    glossary_id: msgspec.Raw = NULL
    glossary_ids: msgspec.Raw = NULL


DECODER = msgspec.json.Decoder(JsonBody)
NAMES = msgspec.json.Decoder(str | list[str] | None)


class DeepL:
    """DeepL's API, version 2."""

    name = "deepl"
    key_field: str | None = "auth_key"

    def read(self, request: Request) -> Peek:
        """What the JSON body, or the form, asks for."""
        body = _body(request)
        if not body.text:
            raise InvalidFieldError("Parameter 'text' not specified.")
        source = source_tag(body.source_lang, "source_lang")
        return peeked(
            targets=(tag(body.target_lang, "target_lang"),),
            source=source,
            texts=texts_of(body.text),
            glossary_ids=() if source is None else glossary_ids(body.glossary_id, body.glossary_ids),
        )

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"message": "…"}`; 403 for keys, 456 for a used-up quota."""
        status = STATUSES[error]
        if isinstance(error, errors.KeyMissingError):
            status = 403
        elif isinstance(error, errors.QuotaError):
            status = QUOTA_EXCEEDED
        elif isinstance(error, errors.CallerError) and status == 422:
            status = 400
        return answer(status, {"message": str(error)}, headers_of(error))

    def languages(self, request: Request, site: Site) -> Answer:
        """Source or target languages; the Python client says which in a form body on GET."""
        kind = first(form(request), "type") or "source"
        if kind not in ("source", "target"):
            raise InvalidFieldError("Value for 'type' not supported: expected source or target.")
        tags = (
            set(site.offer.targets)
            if kind == "source"
            else {each for to in site.offer.targets.values() for each in to}
        )
        listing: list[dict[str, object]] = [
            {"language": code.upper(), "name": english(code)} for code in sorted(tags)
        ]
        if kind == "target":
            listing = [{**entry, "supports_formality": False} for entry in listing]
        return answer(200, listing)

    def usage(self, _: Request, site: Site) -> Answer:
        """`GET /v2/usage`."""
        usage = site.usage
        limit = NO_LIMIT if usage.limit is None else usage.limit
        return answer(200, {"character_count": usage.characters, "character_limit": limit})


class DeepLFiles(DeepL):
    """`POST /v2/document`."""

    def read(self, request: Request) -> Peek:
        """What the form asks for."""
        said = uploaded(request)
        source = source_tag(first(said.fields, "source_lang"), "source_lang")
        one = said.fields.get("glossary_id")
        return peeked(
            targets=(tag(first(said.fields, "target_lang"), "target_lang"),),
            source=source,
            sample=said.sample,
            glossary_ids=()
            if source is None
            else glossary_ids(one and one[-1], said.fields.get("glossary_ids")),
        )


def glossary_ids(one: Any, several: Any) -> tuple[str, ...]:
    """The glossaries that two fields name.

    Args:
        one: `glossary_id`: a string where it is any.
        several: `glossary_ids`: a list of strings, each of which may be several with commas between them, or one such.

    Returns:
        None of them where a pod would refuse the fields, which it says better.
    """
    listed = [several] if isinstance(several, str) else [] if several is None else several
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        return ()
    found = [part.strip() for item in listed for part in item.split(",") if part.strip()]
    if isinstance(one, str) and one:
        return () if found else (one,)
    return tuple(found) if one in (None, "") and len(found) <= MOST_GLOSSARIES else ()


def _body(request: Request) -> Body:
    if not request.is_form and request.body.lstrip()[:1] == b"{":
        body = read_json(request.body, DECODER)
        return msgspec.structs.replace(
            body, glossary_id=_names(body.glossary_id), glossary_ids=_names(body.glossary_ids)
        )
    fields = form(request)
    return Body(
        text=fields.get("text"),
        target_lang=first(fields, "target_lang"),
        source_lang=first(fields, "source_lang"),
        **_glossary_fields(request),
    )


def _glossary_fields(request: Request) -> dict[str, Any]:
    """As a pod reads a form: the last of a field holds, and the address only where there is no body."""
    fields = request.form_fields() if request.body else request.query_fields()
    one = fields.get("glossary_id")
    return {"glossary_id": one and one[-1], "glossary_ids": fields.get("glossary_ids")}


def _names(value: msgspec.Raw) -> str | list[str] | int | None:
    try:
        names: str | list[str] | None = NAMES.decode(value)
    except msgspec.DecodeError:
        return NO_NAME
    return names
