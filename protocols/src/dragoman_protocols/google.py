"""Google Cloud Translation, v2: `/language/translate/v2`, its `/detect` and its `/languages`.

Sources: https://cloud.google.com/translate/docs/reference/rest/v2/translate and the client
google-cloud-translate 3.28.0 (`translate_v2.Client`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, Struct

from dragoman_protocols import errors
from dragoman_protocols.bodies import T, read_fields, read_json
from dragoman_protocols.calls import Detect, Peek, Reading, Results, Translate, peek_of
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation, json_or_form
from dragoman_protocols.errors import ErrorTable, RequestError
from dragoman_protocols.forms import last
from dragoman_protocols.languages import Codes
from dragoman_protocols.markup_tokens import TokenKind, tokens
from dragoman_protocols.messages import Answer, Request, error_answer, json_answer
from dragoman_protocols.offer import Offer, name_in
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult, not_blank, put_back

if TYPE_CHECKING:
    from dragoman_protocols import detection

PATH = "/language/translate/v2"

MAX_SEGMENTS = 128

ERRORS: ErrorTable[tuple[int, str, str]] = ErrorTable(
    {
        errors.BodyTooLargeError: (413, "INVALID_ARGUMENT", "uploadTooLarge"),
        errors.MethodNotAllowedError: (405, "UNIMPLEMENTED", "httpMethodNotAllowed"),
        errors.UnknownPathError: (404, "NOT_FOUND", "notFound"),
        errors.UnknownDeploymentError: (404, "NOT_FOUND", "notFound"),
        errors.KeyMissingError: (401, "UNAUTHENTICATED", "required"),
        errors.KeyRefusedError: (403, "PERMISSION_DENIED", "forbidden"),
        errors.TokenRefusedError: (401, "UNAUTHENTICATED", "authError"),
        errors.QuotaError: (429, "RESOURCE_EXHAUSTED", "quotaExceeded"),
        errors.CallerError: (400, "INVALID_ARGUMENT", "invalid"),
        errors.RateLimitedError: (429, "RESOURCE_EXHAUSTED", "rateLimitExceeded"),
        errors.CapacityError: (503, "UNAVAILABLE", "backendError"),
        errors.EngineDeadError: (503, "UNAVAILABLE", "backendError"),
        errors.DeadlineExceededError: (504, "DEADLINE_EXCEEDED", "backendError"),
        errors.UpstreamError: (502, "INTERNAL", "backendError"),
        RequestError: (500, "INTERNAL", "backendError"),
    }
)
"""Status, Google's name for it, and a reason."""

CODES = Codes(
    {"zh": "zh-Hans", "zh-cn": "zh-Hans", "zh-tw": "zh-Hant", "iw": "he", "jw": "jv", "no": "nb"},
    {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "nb": "no", "fil": "tl"},
)
"""Source: https://cloud.google.com/translate/docs/languages"""

BARE_AMPERSAND = re.compile(r"&(?!#\d+;|#[xX][0-9a-fA-F]+;|\w+;)")


class GoogleFormat(StrEnum):
    """How texts are written."""

    HTML = "html"
    TEXT = "text"


class Detection(Struct):
    """The parameters of a detection."""

    q: Annotated[str | list[str], Meta(description="one text, or several")]


class TranslationPair(Struct):
    """What a router reads of the parameters of a translation."""

    q: Annotated[str | list[str], Meta(description="one text, or several")]
    target: Annotated[str, Meta(min_length=1, description="code of the language to translate into")]
    source: Annotated[
        str | None, Meta(description="code of the texts' language; default: detected, text by text")
    ] = None


class Translation(TranslationPair):
    """The parameters of a translation; in the query, in a form or in a JSON body."""

    format: Annotated[GoogleFormat | None, Meta(description="html, which is the default, or text")] = None
    model: Annotated[str | None, Meta(description="answered as it is: a pod has one model")] = None


class LanguagesQuery(Struct):
    """The parameters of a list of languages."""

    target: Annotated[str | None, Meta(description="code of the language that names are in")] = None


FORMATS = {GoogleFormat.HTML: Format.HTML, GoogleFormat.TEXT: Format.PLAIN}

_PAIR = msgspec.json.Decoder(TranslationPair)
_TRANSLATION = msgspec.json.Decoder(Translation)
_DETECTION = msgspec.json.Decoder(Detection)


class Google(Api):
    """The API."""

    name = "google"
    key_headers = (b"x-goog-api-key",)
    key_parameters = ("key",)
    key_place = "in the header `X-Goog-Api-Key: KEY` or the parameter `key`"

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"code", "message", "errors", "status"}}`."""
        status, name, reason = ERRORS[error]
        item = {"message": str(error), "domain": "global", "reason": reason}
        body = {"code": status, "message": str(error), "errors": [item], "status": name}
        return error_answer(error, status, {"error": body})


def find(body: TranslationPair, offer: Offer) -> Peek:
    """The pair and the texts of a translation."""
    source = CODES.source(body.source, offer.listed_sources)
    return peek_of(Need(source, (CODES.tag(body.target, offer.listed_targets),), _texts(body)))


def call(body: Translation, found: Peek, site: Site) -> Translate:
    """Up to 128 texts of one pair."""
    (need,) = found.needs
    site.limits.check_texts(len(need.texts), MAX_SEGMENTS)
    form = body.format or GoogleFormat.HTML
    wanted = not_blank(need.texts)
    request = TranslationRequest(wanted, need.targets[0], need.source, format=FORMATS[form])

    def render(results: Results) -> Answer:
        done = put_back(need.texts, results[0] if results else (), need.source)
        return json_answer({"data": {"translations": [_rendered(each, body, form) for each in done]}})

    return Translate((request,) if wanted else (), found.characters, render)


def read_detection(request: Request, site: Site) -> Detect:
    """Up to 128 texts."""
    texts = _texts(_parameters(request, _DETECTION))
    site.limits.check_texts(len(texts), MAX_SEGMENTS)
    return Detect(texts, _detections)


def respond_languages(request: Request, site: Site) -> Answer:
    """Every language, with its name where `target` is the code of the language that names are wanted in."""
    tags = site.offer.all_languages
    items = [{"language": CODES.code(tag)} for tag in tags]
    target = last({**request.query_fields(), **request.form_fields()}, "target")
    if target:
        locale = CODES.locale(target)
        items = [item | {"name": name_in(tag, locale)} for item, tag in zip(items, tags, strict=True)]
    return json_answer({"data": {"languages": items}})


def _parameters(request: Request, decoder: msgspec.json.Decoder[T]) -> T:
    """The parameters, wherever they are: the query counts beside a form, not beside JSON."""
    if request.body and not (request.is_form or request.is_multipart):
        return read_json(request.body, decoder)
    query, form = request.query_fields(), request.form_fields()
    fields: dict[str, object] = {name: values[-1] for name, values in {**query, **form}.items()}
    if texts := [*query.get("q", ()), *form.get("q", ())]:
        fields["q"] = texts
    return read_fields(fields, decoder.type)


def _texts(body: TranslationPair | Detection) -> tuple[str, ...]:
    return (body.q,) if isinstance(body.q, str) else tuple(body.q)


def _rendered(result: TranslationResult, body: Translation, form: GoogleFormat) -> dict[str, Any]:
    answer = {"translatedText": escaped(result.text) if form is GoogleFormat.HTML else result.text}
    if not body.source:
        answer["detectedSourceLanguage"] = CODES.code(result.source_lang)
    if body.model:
        answer["model"] = body.model
    return answer


def escaped(text: str) -> str:
    """HTML with its text as Google writes it: no quotation mark and no bare ampersand outside tags.

    Args:
        text: HTML, or what was sent as such.
    """
    return "".join(
        _escaped_text(token.raw) if token.kind is TokenKind.TEXT else token.raw
        for token in tokens(text, html=True)
    )


def _escaped_text(text: str) -> str:
    text = BARE_AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#39;")


def _detections(found: Sequence[detection.Detection]) -> Answer:
    """For each text a list of one."""
    return json_answer(
        {
            "data": {
                "detections": [
                    [
                        {
                            "language": CODES.code(each.tag),
                            "confidence": each.confidence,
                            "isReliable": False,
                        }
                    ]
                    for each in found
                ]
            }
        }
    )


API = Google()
READING = Reading(
    lambda request: _parameters(request, _PAIR),
    find,
    call,
    lambda request: _parameters(request, _TRANSLATION),
)
_BOTH = frozenset({"GET", "POST"})
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        PATH,
        _BOTH,
        reading=READING,
        operation=Operation("Translate up to 128 texts.", json_or_form(Translation), Translation),
    ),
    Endpoint(
        API,
        EndpointKind.DETECT,
        f"{PATH}/detect",
        _BOTH,
        detect=read_detection,
        operation=Operation(
            "Detect the language of each of up to 128 texts.",
            json_or_form(Detection),
            Detection,
        ),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        f"{PATH}/languages",
        _BOTH,
        respond=respond_languages,
        operation=Operation(
            "List the languages. With `target`, their names are in that language.",
            json_or_form(LanguagesQuery),
            LanguagesQuery,
        ),
    ),
)
