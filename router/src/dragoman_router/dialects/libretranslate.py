"""LibreTranslate 1.9: `POST /translate` with `q`, `source`, `target` as JSON, form or query.

Source: https://github.com/LibreTranslate/LibreTranslate/blob/main/libretranslate/app.py
"""

from __future__ import annotations

import msgspec

from dragoman_contract.files import FILE_ENDINGS
from dragoman_router import errors
from dragoman_router.dialects.asking import (
    Answer,
    Ask,
    Codes,
    Request,
    Served,
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

CODES = Codes({"zt": "zh-Hant", "pb": "pt-BR"})
"""Codes of Argos models that older clients send."""


class Body(msgspec.Struct):
    """Fields of a JSON body."""

    q: str | list[str] | None = None
    source: str | None = None
    target: str | None = None


DECODER = msgspec.json.Decoder(Body)


class LibreTranslate:
    """LibreTranslate's API."""

    name = "libretranslate"
    key_field: str | None = "api_key"

    def read(self, request: Request) -> Ask:
        """What the JSON body, or the form and the query, ask for."""
        body = _body(request)
        if body.q is None:
            raise InvalidFieldError("Invalid request: missing q parameter")
        return Ask(
            targets=(tag(body.target, "target", CODES),),
            source=source_tag(body.source, "source", CODES),
            texts=texts_of(body.q),
        )

    def refuse(self, error: RefusedError) -> Answer:
        """`{"error": "…"}`; what is wrong with a request is 400 there, with a key 403."""
        status = status_of(error)
        if isinstance(error, errors.KeyMissingError | errors.QuotaExceededError):
            status = 403
        elif isinstance(error, errors.CallerError) and status == 422:
            status = 400
        return answer(status, {"error": str(error)}, retry_after(error))

    def languages(self, _: Request, served: Served) -> Answer:
        """One entry for each source, its own code among the targets as upstream has it."""
        listing = [
            {"code": source, "name": english(source), "targets": sorted({source, *targets})}
            for source, targets in served.targets.items()
        ]
        return answer(200, listing)

    def settings(self, key_required: bool, char_limit: int) -> Answer:
        """`GET /frontend/settings`: the limits that clients look up."""
        return answer(
            200,
            {
                "apiKeys": key_required,
                "charLimit": char_limit,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": key_required,
                "suggestions": False,
                "supportedFilesFormat": list(FILE_ENDINGS),
            },
        )


class LibreTranslateFiles(LibreTranslate):
    """`POST /translate_file`."""

    def read(self, request: Request) -> Ask:
        """What the form and the query ask for; the query wins, as in pods."""
        said = uploaded(request)
        fields = {**said.fields, **request.parameters()}
        return Ask(
            targets=(tag(first(fields, "target"), "target", CODES),),
            source=source_tag(first(fields, "source"), "source", CODES),
            sample=said.sample,
        )


def _body(request: Request) -> Body:
    if request.is_form or request.body.lstrip()[:1] != b"{":
        fields = form(request)
        q = fields.get("q")
        return Body(
            q=None if q is None else q[0] if len(q) == 1 else q,
            source=first(fields, "source"),
            target=first(fields, "target"),
        )
    return decoded(request.body, DECODER)
