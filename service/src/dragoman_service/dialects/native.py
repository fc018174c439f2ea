"""The pod's own API: `POST /translate {text, source_lang, target_lang}` → `{translation}`."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_service.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    DrainingError,
    EmptyTextError,
    EngineDeadError,
    InvalidFieldError,
    MalformedRequestError,
    ServiceError,
    TextTooLongError,
    TruncatedOutputError,
)
from dragoman_service.exchange import ClientGoneError, read_body, while_connected
from dragoman_service.languages import Pair
from dragoman_service.lifecycle import Lifecycle
from dragoman_service.metrics import Metrics
from dragoman_service.translate import Translation, Translator

STATUSES: tuple[tuple[type[ServiceError], int], ...] = (
    (MalformedRequestError, 400),
    (EmptyTextError, 400),
    (BodyTooLargeError, 413),
    (TextTooLongError, 413),
    (CallerError, 422),
    (CapacityError, 503),
    (EngineDeadError, 503),
    (DeadlineExceededError, 504),
    (TruncatedOutputError, 502),
    (ServiceError, 500),
)
"""The first class that fits an error gives its status."""

MOST_COMPLAINTS = 5
"""A list of wrong items must not make an answer as long as the request."""

CLIENT_CLOSED_REQUEST = 499
"""What nginx logs for a client that left; nobody receives it."""


class TranslateRequest(BaseModel):
    """The body of `POST /translate`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    text: str | list[str] = Field(description="one text, or several")
    source_lang: Annotated[str, StringConstraints(max_length=35)] = Field(
        description='BCP-47 tag of the text, such as "en"'
    )
    target_lang: Annotated[str, StringConstraints(max_length=35)] = Field(
        description='BCP-47 tag of the translation, such as "de" or "zh-Hant"'
    )


class TranslateResponse(BaseModel):
    """Its answer: one translation where one text was sent, else as many as texts."""

    translation: str | list[str]


def parse(body: bytes, max_texts: int) -> tuple[Translation, bool]:
    """What a body asks for, and whether it asked with a list.

    Args:
        body: As it came.
        max_texts: Most texts that a list may have.

    Raises:
        MalformedRequestError: It is not UTF-8, or not JSON.
        InvalidFieldError: It is JSON, but not of this shape; the fields are named.
    """
    try:
        document = body.decode()
    except UnicodeDecodeError as error:
        raise MalformedRequestError(f"the body is not UTF-8 (byte {error.start})") from None
    try:
        asked = TranslateRequest.model_validate_json(document)
    except ValidationError as error:
        raise _refusal(error) from None
    several = isinstance(asked.text, list)
    texts = tuple(asked.text) if isinstance(asked.text, list) else (asked.text,)
    if len(texts) > max_texts:
        raise InvalidFieldError(f"text: {len(texts)} texts in one request; send at most {max_texts}")
    return Translation(texts, asked.source_lang, asked.target_lang), several


def _refusal(error: ValidationError) -> CallerError:
    problems = error.errors(include_url=False, include_input=False)
    if problems[0]["type"] == "json_invalid":
        return MalformedRequestError(f"the body is not JSON: {problems[0]['ctx']['error']}")
    if not problems[0]["loc"]:
        return InvalidFieldError("the body must be a JSON object with text, source_lang and target_lang")
    complaints = dict.fromkeys(_complaint(found["type"], found["msg"], found["loc"]) for found in problems)
    return InvalidFieldError("; ".join([said for said in complaints if said][:MOST_COMPLAINTS]))


def _complaint(kind: str, message: str, place: tuple[int | str, ...]) -> str:
    """One problem in words, or nothing where another problem says it better."""
    field, *inner = place
    # A union reports its members as elements of the path: `text.str`, `text.list[str]`, `text.list[str].0`.
    item = next((f"[{part}]" for part in inner if isinstance(part, int)), "")
    match kind:
        case "missing":
            return f"{field} is required"
        case "extra_forbidden":
            return f"{str(field)[:40]!r} is no field of this request"
        case "string_type" if field == "text" and not item:
            return "text must be a string or a list of strings"
        case "string_type":
            return f"{field}{item} must be a string"
        case "list_type":
            return ""
    return f"{field}{item}: {message}"


def status_of(error: ServiceError) -> int:
    """The HTTP status of an error."""
    return next(status for cause, status in STATUSES if isinstance(error, cause))


def render_error(error: ServiceError) -> Response:
    """The answer for an error: `{"error": {"code", "message"}}`."""
    headers = {}
    if isinstance(error, CapacityError):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, DrainingError | EngineDeadError | BodyTooLargeError):
        headers["Connection"] = "close"
    return error_body(error.code, str(error), status_of(error), headers)


def error_body(code: str, message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """The one shape of errors, for those that never reach a route too."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def render(translations: list[str], several: bool) -> Response:
    """The answer for translations."""
    return JSONResponse({"translation": translations if several else translations[0]})


def native_routes(
    translator: Translator,
    lifecycle: Lifecycle,
    metrics: Metrics,
    *,
    max_body_bytes: int,
    max_texts: int,
) -> APIRouter:
    """The dialect's routes.

    Args:
        translator: The core.
        lifecycle: Admits requests.
        metrics: Counts them.
        max_body_bytes: Largest body that is read.
        max_texts: Most texts in one request.
    """
    router = APIRouter()

    @router.post(TRANSLATE_PATH, response_model=TranslateResponse, openapi_extra=_REQUEST_BODY)
    async def translate(request: Request) -> Response:
        """Translate one text or several."""
        began_s = time.monotonic()
        pair: Pair | None = None
        try:
            body = await read_body(request, max_body_bytes)
            began_s = time.monotonic()
            with lifecycle.admit():
                asked, several = parse(body, max_texts)
                pair = translator.check(asked)
                translations = await while_connected(request, lifecycle, translator.translate(asked))
        except ServiceError as error:
            metrics.refused(pair, error.code)
            return render_error(error)
        except ClientGoneError:
            metrics.refused(pair, "disconnected")
            return Response(status_code=CLIENT_CLOSED_REQUEST)
        metrics.translated(pair, len(translations), time.monotonic() - began_s)
        return render(translations, several)

    return router


_REQUEST_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": TranslateRequest.model_json_schema()}},
    },
    "responses": {
        str(status): {
            "description": " or ".join(sorted(cause.code for cause, at in STATUSES if at == status))
        }
        for status in sorted({status for _, status in STATUSES})
    },
}
