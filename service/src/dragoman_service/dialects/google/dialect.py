"""Google Cloud Translation, v2: `/language/translate/v2`, its `/detect` and its `/languages`.

Sources: https://cloud.google.com/translate/docs/reference/rest/v2/translate and the client
google-cloud-translate 3.28.0 (`translate_v2.Client`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from dragoman_protocols.blanks import not_blank, put_back
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    EngineDeadError,
    InvalidFieldError,
    MalformedRequestError,
    ServiceError,
)
from dragoman_protocols.offer import name_in
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.bodies import decoded, read_json, refusal
from dragoman_service.dialects.google.html import escaped
from dragoman_service.dialects.google.shapes import Detection, GoogleFormat, Translation
from dragoman_service.dialects.headers import headers_for
from dragoman_service.dialects.openapi import FORM
from dragoman_service.dialects.queries import bound_fields
from dragoman_service.http.work import Call, Results

PATH = "/language/translate/v2"

MOST_SEGMENTS = 128

MOST_FIELDS = 1000
"""Of a query and a form together: eight times as many as there may be texts."""

STATUSES: tuple[tuple[type[ServiceError], int, str, str], ...] = (
    (BodyTooLargeError, 413, "INVALID_ARGUMENT", "uploadTooLarge"),
    (CallerError, 400, "INVALID_ARGUMENT", "invalid"),
    (CapacityError, 503, "UNAVAILABLE", "backendError"),
    (EngineDeadError, 503, "UNAVAILABLE", "backendError"),
    (DeadlineExceededError, 504, "DEADLINE_EXCEEDED", "backendError"),
    (ServiceError, 500, "INTERNAL", "backendError"),
)
"""The first class that fits an error gives its status, its name for it, and a reason."""

SAID = {
    400: "a field, a language or the pair is wrong; nothing to translate; too much of it",
    413: "the body is too large",
    500: "the model did not translate",
    503: "loading, draining or overloaded; with Retry-After",
    504: "not finished in time",
}

TAGS = {"zh": "zh-Hans", "zh-CN": "zh-Hans", "zh-TW": "zh-Hant", "iw": "he", "jw": "jv", "no": "nb"}
"""Codes that Google has for a language whose BCP-47 tag is another.

Source: https://cloud.google.com/translate/docs/languages
"""

CODES = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "he": "iw", "nb": "no", "fil": "tl"}

FORMATS = {GoogleFormat.HTML: Format.HTML, GoogleFormat.TEXT: Format.PLAIN}


Shape = TypeVar("Shape", bound=Detection)


def parameters(request: Request, body: bytes, shape: type[Shape], max_texts: int) -> Shape:
    """The parameters of a call, wherever they stand.

    Args:
        request: Its query counts beside a form, not beside JSON.
        body: Empty, a form, or JSON.
        shape: What they must be.
        max_texts: Texts that the pod takes in one request, where that is less than Google's bound.

    Raises:
        CallerError: They are not of that shape, or there are too many texts.
    """
    bound_fields(request)
    media = request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if body and media != FORM:
        found = read_json(body, shape)
    else:
        given = _parsed(f"{request.url.query}&{decoded(body)}")
        one = {name: values[-1] for name, values in given.items() if name != "q"}
        try:
            found = shape.model_validate(one | ({"q": given["q"]} if "q" in given else {}))
        except ValidationError as error:
            raise refusal(error, shape) from None
    most = min(MOST_SEGMENTS, max_texts)
    if len(found.texts) > most:
        raise InvalidFieldError(f"{len(found.texts)} text segments in one request; send at most {most}")
    return found


def _parsed(query: str) -> dict[str, list[str]]:
    try:
        return parse_qs(query, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise MalformedRequestError(f"there are more than {MOST_FIELDS} parameters") from None


def tag_of(code: str, known: tuple[str, ...]) -> str:
    """The BCP-47 tag of one of Google's codes.

    Args:
        code: As it was asked for.
        known: Tags that the pod offers: a code that is one of them stands for itself.
    """
    return code if code in known else TAGS.get(code, code)


@dataclass(frozen=True)
class Google:
    """The dialect.

    Args:
        known: BCP-47 tags that the pod offers.
        max_texts: Texts that the pod takes in one request.
    """

    known: tuple[str, ...]
    max_texts: int
    name: str = "google"

    def read(self, request: Request, body: bytes) -> Call:
        """Up to 128 texts of one pair."""
        asked = parameters(request, body, Translation, self.max_texts)
        source = tag_of(asked.source, self.known) if asked.source else None
        form = asked.format or GoogleFormat.HTML
        wanted = not_blank(asked.texts)
        request_ = TranslationRequest(wanted, tag_of(asked.target, self.known), source, format=FORMATS[form])

        def render(results: Results) -> Response:
            done = put_back(asked.texts, results[0] if results else (), source)
            return JSONResponse({"data": {"translations": [_rendered(each, asked, form) for each in done]}})

        return Call((request_,) if wanted else (), render, charged=sum(map(len, asked.texts)))

    def refuse(self, error: ServiceError) -> Response:
        """`{"error": {"code", "message", "errors", "status"}}`."""
        _, status, name, reason = next(row for row in STATUSES if isinstance(error, row[0]))
        message = str(error)
        item = {"message": message, "domain": "global", "reason": reason}
        body = {"error": {"code": status, "message": message, "errors": [item], "status": name}}
        return JSONResponse(body, status, headers_for(error))


def _rendered(result: TranslationResult, asked: Translation, form: GoogleFormat) -> dict[str, Any]:
    answer = {"translatedText": escaped(result.text) if form is GoogleFormat.HTML else result.text}
    if not asked.source:
        answer["detectedSourceLanguage"] = CODES.get(result.source_lang, result.source_lang)
    if asked.model:
        answer["model"] = asked.model
    return answer


def detections(asked: Detection) -> dict[str, Any]:
    """The answer of `/detect`: for each text a list of one."""
    found = [detect(text) for text in asked.texts]
    return {
        "data": {
            "detections": [
                [
                    {
                        "language": CODES.get(each.tag, each.tag),
                        "confidence": each.confidence,
                        "isReliable": False,
                    }
                ]
                for each in found
            ]
        }
    }


def languages(offer: tuple[str, ...], target: str | None) -> dict[str, Any]:
    """The answer of `/languages`.

    Args:
        offer: BCP-47 tags.
        target: Code of the language that names are wanted in, None for no names.
    """
    items = [{"language": CODES.get(tag, tag)} for tag in offer]
    if target:
        locale = TAGS.get(target, target)
        items = [item | {"name": name_in(tag, locale)} for item, tag in zip(items, offer, strict=True)]
    return {"data": {"languages": items}}
