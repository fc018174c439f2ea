"""DeepL v2: `POST /v2/translate` as JSON or form, `/v2/document`. Source: https://github.com/DeepLcom/openapi"""

from __future__ import annotations

import msgspec

from dragoman_router import errors
from dragoman_router.dialects.asking import (
    Answer,
    Ask,
    Request,
    Served,
    Usage,
    answer,
    decoded,
    first,
    form,
    retry_after,
    source_tag,
    tag,
    texts_of,
    uploaded,
)
from dragoman_router.dialects.names import english
from dragoman_router.dialects.native import status_of
from dragoman_router.errors import InvalidFieldError, RefusedError

NO_LIMIT = 1_000_000_000_000
"""What DeepL's own unlimited keys are told as their limit; clients divide by it."""
QUOTA_EXCEEDED = 456


class Body(msgspec.Struct):
    """Fields of a JSON body."""

    text: str | list[str] | None = None
    target_lang: str | None = None
    source_lang: str | None = None
    auth_key: str | None = None


DECODER = msgspec.json.Decoder(Body)


class DeepL:
    """DeepL's API, version 2."""

    name = "deepl"

    def read(self, request: Request) -> Ask:
        """What the JSON body, or the form, asks for."""
        body = _body(request)
        if not body.text:
            raise InvalidFieldError("Parameter 'text' not specified.")
        return Ask(
            targets=(tag(body.target_lang, "target_lang"),),
            source=source_tag(body.source_lang, "source_lang"),
            texts=texts_of(body.text),
            key=body.auth_key,
        )

    def refuse(self, error: RefusedError) -> Answer:
        """`{"message": "…"}`; 403 for keys, 456 for a used-up quota."""
        status = status_of(error)
        if isinstance(error, errors.KeyMissingError):
            status = 403
        elif isinstance(error, errors.QuotaExceededError):
            status = QUOTA_EXCEEDED
        elif isinstance(error, errors.CallerError) and status == 422:
            status = 400
        return answer(status, {"message": str(error)}, retry_after(error))

    def languages(self, request: Request, served: Served) -> Answer:
        """Source or target languages; the Python client says which in a form body on GET."""
        kind = first(form(request), "type") or "source"
        if kind not in ("source", "target"):
            raise InvalidFieldError("Value for 'type' not supported: expected source or target.")
        tags = (
            set(served.targets)
            if kind == "source"
            else {each for to in served.targets.values() for each in to}
        )
        listing: list[dict[str, object]] = [
            {"language": code.upper(), "name": english(code)} for code in sorted(tags)
        ]
        if kind == "target":
            listing = [{**entry, "supports_formality": False} for entry in listing]
        return answer(200, listing)

    def usage(self, usage: Usage) -> Answer:
        """`GET /v2/usage`."""
        limit = NO_LIMIT if usage.limit is None else usage.limit
        return answer(200, {"character_count": usage.characters, "character_limit": limit})


class DeepLFiles(DeepL):
    """`POST /v2/document`."""

    def read(self, request: Request) -> Ask:
        """What the form asks for."""
        said = uploaded(request)
        return Ask(
            targets=(tag(first(said.fields, "target_lang"), "target_lang"),),
            source=source_tag(first(said.fields, "source_lang"), "source_lang"),
            sample=said.sample,
            key=first(said.fields, "auth_key"),
        )


def _body(request: Request) -> Body:
    if not request.is_form and request.body.lstrip()[:1] == b"{":
        return decoded(request.body, DECODER)
    fields = form(request)
    return Body(
        text=fields.get("text"),
        target_lang=first(fields, "target_lang"),
        source_lang=first(fields, "source_lang"),
        auth_key=first(fields, "auth_key"),
    )
