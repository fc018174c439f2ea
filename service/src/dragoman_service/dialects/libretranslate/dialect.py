"""`POST /translate` as LibreTranslate has it: `{q, source, target}` → `{translatedText}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dragoman_protocols.api import Results
from dragoman_protocols.blanks import UNDETERMINED, not_blank, put_back
from dragoman_protocols.errors import (
    CallerError,
    CapacityError,
    DrainingError,
    EngineDeadError,
    InvalidFieldError,
    NotReadyError,
    QuotaError,
    RequestError,
)
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.headers import headers_for
from dragoman_service.dialects.libretranslate.codes import AUTO, from_tag, to_tag
from dragoman_service.dialects.libretranslate.fields import (
    MULTIPART,
    URLENCODED,
    Fields,
    is_json,
    missing,
    read_fields,
)
from dragoman_service.dialects.queries import too_many_fields
from dragoman_service.http.work import Call

FORMATS = {"": Format.PLAIN, "text": Format.PLAIN, "html": Format.HTML}

MOST_ALTERNATIVES = 9

BODY_BYTES_PER_CHAR = 10
"""A form, the widest of the encodings that clients use, has nine bytes for a character of Chinese; the tenth
leaves room for the other fields. So a text within the limit of characters fits the limit of bytes."""

CORS = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Authorization, Content-Type",
    "Access-Control-Expose-Headers": "Authorization",
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Max-Age": str(60 * 60 * 24 * 20),
}
"""On every answer, so that web pages may call from anywhere."""

KEY = re.compile(rb'(?<!\\)"(q|source|target|text|source_lang|target_lang)"\s*:')
"""In JSON, a quoted word before a colon is a key."""

UNDETECTED = {"confidence": 0.0, "language": "en"}
"""What is said of a text that says nothing of its language."""


@dataclass(frozen=True)
class Limits:
    """What one request may have.

    Args:
        max_body_bytes: Of its body.
        max_texts: In its list.
    """

    max_body_bytes: int
    max_texts: int

    @property
    def max_chars(self) -> int:
        """Characters of one text."""
        return self.max_body_bytes // BODY_BYTES_PER_CHAR


def speaks(request: Request, body: bytes) -> bool:
    """Whether a request to `/translate` is of this dialect rather than of the pod's own.

    Args:
        request: Its query and content type.
        body: All of it, or nothing where that could not be read.
    """
    if too_many_fields(request) or "q" in request.query_params:
        return True
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower().encode("latin-1")
    if not is_json(media, body):
        return media in (MULTIPART, URLENCODED)
    key = KEY.search(body)
    return key is not None and key[1] in (b"q", b"source", b"target")


@dataclass(frozen=True)
class LibreTranslate:
    """The dialect.

    Args:
        limits: What one request may have.
    """

    limits: Limits
    name: str = "libretranslate"

    def read(self, request: Request, body: bytes) -> Call:
        """See `parse`."""
        return parse(read_fields(request, body), self.limits)

    def refuse(self, error: RequestError) -> Response:
        """See `render_error`."""
        return render_error(error)


def parse(fields: Fields, limits: Limits) -> Call:
    """What a request asks for.

    Texts with nothing but white space come back as they are, as does everything where source and target are
    the same.

    Args:
        fields: As it came; unknown ones are left alone.
        limits: What it may have.

    Raises:
        CallerError: It cannot be answered as it is.
    """
    asked = _asked_texts(fields, limits)
    texts = (asked,) if isinstance(asked, str) else asked
    source, target = fields.required("source"), to_tag(fields.required("target"))
    alternatives = _alternatives(fields)
    written = fields.text("format")
    if written not in FORMATS:
        raise InvalidFieldError(f"{written[:20]} format is not supported")
    detects = source.lower() == AUTO
    source_lang = None if detects else language(to_tag(source)).tag
    wanted = not_blank(texts)
    same = [TranslationResult(text, target) for text in wanted] if source_lang == language(target).tag else []
    request = TranslationRequest(
        texts=wanted,
        target_lang=target,
        source_lang=source_lang,
        format=FORMATS[written],
        alternatives=alternatives,
        ignore_unsupported=True,
    )

    def render(results: Results) -> Response:
        each = put_back(texts, same or (results[0] if results else ()), source_lang)
        answer: dict[str, Any] = {"translatedText": [result.text for result in each]}
        if detects:
            answer["detectedLanguage"] = [detected(result) for result in each]
        if alternatives:
            answer["alternatives"] = [list(result.alternatives) for result in each]
        if isinstance(asked, str):
            answer = {name: values[0] for name, values in answer.items()}
        return respond(answer)

    return Call((request,) if wanted and not same else (), render, charged=sum(map(len, texts)))


def _asked_texts(fields: Fields, limits: Limits) -> str | tuple[str, ...]:
    asked = fields.values.get("q")
    if not asked:
        raise missing("q")
    texts = asked if isinstance(asked, list) else [asked]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidFieldError("Invalid request: q parameter is neither a string nor a list of strings")
    if len(texts) > limits.max_texts:
        raise _too_much(len(texts), limits.max_texts)
    longest = max(map(len, texts))
    if longest > limits.max_chars:
        raise _too_much(longest, limits.max_chars)
    return tuple(texts) if isinstance(asked, list) else str(asked)


def _too_much(size: int, limit: int) -> InvalidFieldError:
    return InvalidFieldError(f"Invalid request: request ({size}) exceeds text limit ({limit})")


def _alternatives(fields: Fields) -> int:
    asked = fields.values.get("alternatives")
    if isinstance(asked, list) and not fields.is_json:
        asked = asked[0]
    try:
        wanted = max(0, int(asked or 0)) if isinstance(asked, str | int | float | None) else -1
    except (ValueError, OverflowError):
        wanted = -1
    if wanted < 0:
        raise InvalidFieldError("Invalid request: alternatives parameter is not a number")
    if wanted > MOST_ALTERNATIVES:
        raise InvalidFieldError(f"Invalid request: alternatives parameter must be <= {MOST_ALTERNATIVES}")
    return wanted


def detected(result: TranslationResult) -> dict[str, Any]:
    """The language that a text was taken for."""
    if result.confidence is None or result.source_lang == UNDETERMINED:
        return UNDETECTED
    return detected_language(result.source_lang, result.confidence)


def detected_language(tag: str, confidence: float) -> dict[str, Any]:
    """A language as clients know it.

    Args:
        tag: Of BCP-47.
        confidence: From 0 to 1; given from 0 to 100.
    """
    return {"confidence": float(round(confidence * 100)), "language": from_tag(tag)}


def respond(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer of this API."""
    return JSONResponse(answer, status, {**CORS, **(headers or {})})


def status_of(error: RequestError) -> int:
    """The HTTP status of an error.

    LibreTranslate has no 503. Here it says that another replica, or this one later, would have answered.
    """
    match error:
        case QuotaError():
            return 403
        case CallerError():
            return 400
        case NotReadyError() | DrainingError() | EngineDeadError():
            return 503
        case CapacityError():
            return 429
    return 500


def render_error(error: RequestError) -> Response:
    """The answer for an error: `{"error": "…"}`."""
    status = status_of(error)
    said = f"Slowdown: {error}" if status == 429 else str(error)
    return respond({"error": said}, status, headers_for(error))
