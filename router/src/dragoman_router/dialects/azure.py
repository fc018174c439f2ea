"""Azure Translator: `POST /translate?api-version=3.0&to=de` and the shape of api-version 2026-06-06.

One request may ask for several targets; it goes whole to a deployment that serves them all.
Source: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate
"""

from __future__ import annotations

import msgspec

from dragoman_protocols import errors
from dragoman_protocols.api import Answer, Peek, Request, Site
from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import CallerError, InvalidFieldError, RequestError, headers_of
from dragoman_protocols.forms import first
from dragoman_router.dialects.asking import answer, peeked, source_tag, tag
from dragoman_router.dialects.names import english, own
from dragoman_router.dialects.native import status_of

VERSION_PARAMETER = "api-version"
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur", "ps", "yi", "sd", "ug", "dv", "ckb"})
MOST_TARGETS = 200
MOST_ITEMS = 1000
"""As pods have it."""
NUMBERS: tuple[tuple[type[RequestError], int], ...] = (
    (errors.MalformedRequestError, 400074),
    (errors.UnsupportedPairError, 400036),
    (errors.BodyTooLargeError, 400077),
    (errors.KeyMissingError, 401000),
    (errors.KeyRefusedError, 401000),
    (errors.QuotaError, 403001),
    (errors.UnknownPathError, 404000),
    (errors.UnknownDeploymentError, 404001),
    (errors.InvalidFieldError, 400000),
    (errors.RateLimitedError, 429000),
    (errors.CapacityError, 503000),
    (errors.UpstreamTimeoutError, 504000),
    (errors.UpstreamError, 502000),
    (errors.RequestError, 500000),
)
"""The six digits; the first three are the status."""


class Element(msgspec.Struct):
    """One text of version 3."""

    text: str | None = None
    upper: str | None = msgspec.field(default=None, name="Text")


class Target(msgspec.Struct):
    """One target of version 2026-06-06."""

    language: str | None = None


class Input(msgspec.Struct):
    """One text of version 2026-06-06."""

    text: str | None = None
    language: str | None = None
    targets: list[Target] | None = None


class Inputs(msgspec.Struct):
    """The body of version 2026-06-06."""

    inputs: list[Input]


V3 = msgspec.json.Decoder(list[Element])
V2026 = msgspec.json.Decoder(Inputs)


class Azure:
    """Azure's API."""

    name = "azure"
    key_field: str | None = None

    def read(self, request: Request) -> Peek:
        """What query and body ask for."""
        if request.body.lstrip()[:1] == b"{":
            return _inputs(read_json(request.body, V2026).inputs)
        fields = request.query_fields()
        targets = fields.get("to", [])
        if not targets:
            raise InvalidFieldError("The request is missing the parameter 'to'.")
        texts = [element.text or element.upper or "" for element in read_json(request.body, V3)]
        return peeked(
            targets=_tags(targets, "to"),
            source=source_tag(first(fields, "from"), "from"),
            texts=tuple(texts),
            charged=sum(map(len, texts)) * len(targets),
        )

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"code": 400036, "message"}}`."""
        number = next(number for cause, number in NUMBERS if isinstance(error, cause))
        status = status_of(error)
        if isinstance(error, CallerError):
            status = number // 1000
        return answer(status, {"error": {"code": number, "message": str(error)}}, headers_of(error))

    def languages(self, _: Request, site: Site) -> Answer:
        """`{"translation": {tag: {name, nativeName, dir}}}`."""
        tags = {*site.offer.targets, *(each for to in site.offer.targets.values() for each in to)}
        entries = {
            code: {
                "name": english(code),
                "nativeName": own(code),
                "dir": "rtl" if code.partition("-")[0] in RIGHT_TO_LEFT else "ltr",
            }
            for code in sorted(tags)
        }
        return answer(200, {"translation": entries})


def _inputs(inputs: list[Input]) -> Peek:
    if len(inputs) > MOST_ITEMS:
        raise InvalidFieldError(f"inputs: {len(inputs)} texts; send at most {MOST_ITEMS}")
    sources = {source_tag(each.language, "inputs.language") for each in inputs}
    if len(sources) != 1:
        raise InvalidFieldError("inputs: send texts of one source language per request, and at least one")
    targets = [str(to.language or "") for each in inputs for to in each.targets or ()]
    if not targets:
        raise InvalidFieldError("inputs.targets is required")
    return peeked(
        targets=_tags(targets, "inputs.targets.language"),
        source=sources.pop(),
        texts=tuple(each.text or "" for each in inputs),
        charged=sum(len(each.text or "") * len(each.targets or ()) for each in inputs),
    )


def _tags(codes: list[str], name: str) -> tuple[str, ...]:
    asked = dict.fromkeys(codes)
    if len(asked) > MOST_TARGETS:
        raise InvalidFieldError(f"{name}: {len(asked)} target languages; send at most {MOST_TARGETS}")
    return tuple(dict.fromkeys(tag(code, name) for code in asked))
