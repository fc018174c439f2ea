"""LibreTranslate 1.9: `POST /translate` with `q`, `source`, `target` as JSON, form or query.

Source: https://github.com/LibreTranslate/LibreTranslate/blob/main/libretranslate/app.py
"""

from __future__ import annotations

import msgspec

from dragoman_contract.files import FILE_ENDINGS
from dragoman_protocols import errors
from dragoman_protocols.api import Answer, Peek, Request, Site
from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import InvalidFieldError, RequestError, headers_of
from dragoman_protocols.forms import first
from dragoman_router.dialects.asking import Codes, answer, form, peeked, source_tag, tag, texts_of, uploaded
from dragoman_router.dialects.names import english
from dragoman_router.dialects.native import status_of

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

    def read(self, request: Request) -> Peek:
        """What the JSON body, or the form and the query, ask for."""
        body = _body(request)
        if body.q is None:
            raise InvalidFieldError("Invalid request: missing q parameter")
        return peeked(
            targets=(tag(body.target, "target", CODES),),
            source=source_tag(body.source, "source", CODES),
            texts=texts_of(body.q),
        )

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": "…"}`; what is wrong with a request is 400 there, with a key 403."""
        status = status_of(error)
        if isinstance(error, errors.KeyMissingError | errors.QuotaError):
            status = 403
        elif isinstance(error, errors.CallerError) and status == 422:
            status = 400
        return answer(status, {"error": str(error)}, headers_of(error))

    def languages(self, _: Request, site: Site) -> Answer:
        """One entry for each source, its own code among the targets as upstream has it."""
        listing = [
            {"code": source, "name": english(source), "targets": sorted({source, *targets})}
            for source, targets in site.offer.targets.items()
        ]
        return answer(200, listing)

    def settings(self, _: Request, site: Site) -> Answer:
        """`GET /frontend/settings`: the limits that clients look up."""
        return answer(
            200,
            {
                "apiKeys": site.keys_required,
                "charLimit": -1,
                "filesTranslation": True,
                "frontendTimeout": 500,
                "keyRequired": site.keys_required,
                "suggestions": False,
                "supportedFilesFormat": list(FILE_ENDINGS),
            },
        )


class LibreTranslateFiles(LibreTranslate):
    """`POST /translate_file`."""

    def read(self, request: Request) -> Peek:
        """What the form and the query ask for; the query wins, as in pods."""
        said = uploaded(request)
        fields = {**said.fields, **request.query_fields()}
        return peeked(
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
    return read_json(request.body, DECODER)
