"""Dragoman's own API: `POST /translate {text, source_lang, target_lang}`; errors as `{"error": {code, message}}`."""

from __future__ import annotations

import msgspec

from dragoman_protocols import errors
from dragoman_protocols.api import Answer, Peek, Request, Site
from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import InvalidFieldError, RequestError, headers_of
from dragoman_router.dialects.asking import answer, peeked, source_tag, tag, texts_of

STATUSES: tuple[tuple[type[RequestError], int], ...] = (
    (errors.MalformedRequestError, 400),
    (errors.UnknownPathError, 404),
    (errors.UnknownDeploymentError, 404),
    (errors.UnknownDocumentError, 404),
    (errors.UnknownGlossaryError, 404),
    (errors.BodyTooLargeError, 413),
    (errors.KeyMissingError, 401),
    (errors.KeyRefusedError, 403),
    (errors.QuotaError, 429),
    (errors.CallerError, 422),
    (errors.RateLimitedError, 429),
    (errors.CapacityError, 503),
    (errors.UpstreamTimeoutError, 504),
    (errors.UpstreamError, 502),
    (errors.RequestError, 500),
)
"""The first class that fits an error gives its status; other dialects begin from these."""


class Body(msgspec.Struct):
    """Fields of `POST /translate`."""

    text: str | list[str] | None = None
    source_lang: str | None = None
    target_lang: str | None = None


DECODER = msgspec.json.Decoder(Body)


def status_of(error: RequestError) -> int:
    """The HTTP status of an error."""
    return next(status for cause, status in STATUSES if isinstance(error, cause))


class Native:
    """Dragoman's own API."""

    name = "native"
    key_field: str | None = None

    def read(self, request: Request) -> Peek:
        """What the body asks for."""
        body = read_json(request.body, DECODER)
        if body.text is None:
            raise InvalidFieldError("text is required")
        return peeked(
            targets=(tag(body.target_lang, "target_lang"),),
            source=source_tag(body.source_lang, "source_lang"),
            texts=texts_of(body.text),
        )

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"code", "message"}}`, as an engine pod says it."""
        document = {"error": {"code": error.code, "message": str(error)}}
        return answer(status_of(error), document, headers_of(error))

    def languages(self, _: Request, site: Site) -> Answer:
        """Pairs as a spec lists them."""
        pairs = [
            {"source": source, "targets": list(targets)} for source, targets in site.offer.targets.items()
        ]
        return answer(200, {"languages": pairs})
