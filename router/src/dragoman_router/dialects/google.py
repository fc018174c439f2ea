"""Google Cloud Translation v2: `POST /language/translate/v2`.

Source: https://cloud.google.com/translate/docs/reference/rest/v2/translate
"""

from __future__ import annotations

import msgspec

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
)
from dragoman_router.dialects.names import english
from dragoman_router.dialects.native import status_of
from dragoman_router.errors import CallerError, InvalidFieldError, RefusedError

CODES = Codes({"zh-cn": "zh-Hans", "zh-tw": "zh-Hant", "iw": "he", "jw": "jv", "no": "nb", "tl": "fil"})
OWN_CODES = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "nb": "no"}
STATES = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"} | {
    429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"
}  # fmt: skip


class Body(msgspec.Struct):
    """Fields of a JSON body."""

    q: str | list[str] | None = None
    target: str | None = None
    source: str | None = None


DECODER = msgspec.json.Decoder(Body)


class Google:
    """Google's API, version 2."""

    name = "google"
    key_field: str | None = None

    def read(self, request: Request) -> Ask:
        """What the JSON body, or the form and the query, ask for."""
        if not request.is_form and request.body.lstrip()[:1] == b"{":
            body = decoded(request.body, DECODER)
        else:
            fields = form(request)
            body = Body(fields.get("q"), first(fields, "target"), first(fields, "source"))
        if not body.q:
            raise InvalidFieldError("Required Text")
        return Ask(
            targets=(tag(body.target, "target", CODES),),
            source=source_tag(body.source, "source", CODES),
            texts=texts_of(body.q),
        )

    def refuse(self, error: RefusedError) -> Answer:
        """`{"error": {"code", "message", "errors", "status"}}`."""
        status = status_of(error)
        if isinstance(error, CallerError) and status == 422:
            status = 400
        document = {
            "error": {
                "code": status,
                "message": str(error),
                "errors": [{"message": str(error), "domain": "global", "reason": error.code}],
                "status": STATES.get(status, "INTERNAL"),
            }
        }
        return answer(status, document, retry_after(error))

    def languages(self, request: Request, served: Served) -> Answer:
        """Every language that can be translated from or into; with names where `target` asks for them."""
        tags = {*served.targets, *(each for to in served.targets.values() for each in to)}
        named = first(form(request), "target") is not None
        listing = [
            {"language": OWN_CODES.get(code, code)} | ({"name": english(code)} if named else {})
            for code in sorted(tags)
        ]
        return answer(200, {"data": {"languages": listing}})
