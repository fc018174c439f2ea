"""Errors in DeepL's words, statuses and shape: `{"message"[, "detail"]}`.

Source: https://developers.deepl.com/docs/best-practices/error-handling and what its clients were seen to get.
"""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from dragoman_protocols.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    DrainingError,
    EngineDeadError,
    GlossaryMissingError,
    InvalidFieldError,
    InvalidGlossaryError,
    NotReadyError,
    QuotaError,
    RequestError,
    TextTooLongError,
    UnknownDictionaryError,
    UnknownGlossaryError,
    UnknownLanguageError,
    UnsupportedPairError,
)
from dragoman_service.dialects.headers import headers_for


class UriTooLongError(CallerError):
    """The address is longer than is read."""

    code = "uri_too_long"


class MediaTypeError(CallerError):
    """The answer cannot be written as the caller wants to have it."""

    code = "media_type"


class NotServedError(CallerError):
    """DeepL has it, or somebody thinks so; there is none here."""

    code = "not_found"


class DocumentNotFoundError(CallerError):
    """There is no document of this id and key, or no longer."""

    code = "unknown_document"


class DocumentNotDoneError(NotReadyError):
    """A document is still being translated; its pod is the one to ask again."""

    begun = True


STATUSES: tuple[tuple[type[RequestError], int], ...] = (
    (UnknownGlossaryError, 404),
    (UnknownDictionaryError, 404),
    (NotServedError, 404),
    (DocumentNotFoundError, 404),
    (BodyTooLargeError, 413),
    (TextTooLongError, 413),
    (UriTooLongError, 414),
    (MediaTypeError, 415),
    (QuotaError, 456),
    (CallerError, 400),
    (NotReadyError, 503),
    (DrainingError, 503),
    (GlossaryMissingError, 503),
    (CapacityError, 429),
    (EngineDeadError, 503),
    (DeadlineExceededError, 504),
    (RequestError, 500),
)
"""The first class that fits an error gives its status."""


def unsupported(field: str) -> InvalidFieldError:
    """What DeepL says of a value that it does not take; clients look for these words."""
    return InvalidFieldError(f"Value for '{field}' not supported.")


def missing(field: str) -> InvalidFieldError:
    """What DeepL says of a field that is not there."""
    return InvalidFieldError(f"Parameter '{field}' not specified.")


def status_of(error: RequestError) -> int:
    """The HTTP status of an error."""
    return next(status for cause, status in STATUSES if isinstance(error, cause))


def refuse(error: RequestError) -> Response:
    """The answer for an error."""
    return JSONResponse(_body(error), status_of(error), headers_for(error))


def _body(error: RequestError) -> dict[str, str]:
    match error:
        case InvalidGlossaryError():
            return {"message": "Invalid glossary entries provided", "detail": str(error)}
        case UnsupportedPairError() | UnknownLanguageError():
            return {"message": "Value for 'target_lang' not supported.", "detail": str(error)}
        case QuotaError():
            return {"message": "Quota Exceeded", "detail": str(error)}
        case CapacityError() if status_of(error) == 429:
            return {"message": "Too many requests", "detail": str(error)}
    return {"message": str(error)}
