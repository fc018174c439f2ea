"""Errors in DeepL's words, statuses and shape: `{"message"[, "detail"]}`.

Source: https://developers.deepl.com/docs/best-practices/error-handling, and answers that its clients received.
"""

from __future__ import annotations

from dragoman_protocols import errors
from dragoman_protocols.endpoints import Api
from dragoman_protocols.errors import CallerError, ErrorTable, InvalidFieldError, RequestError
from dragoman_protocols.messages import Answer, Request, error_answer


class UriTooLongError(CallerError):
    """The query is longer than is read."""

    code = "uri_too_long"


class MediaTypeError(CallerError):
    """The answer cannot be written in a media type that the client accepts."""

    code = "media_type"


ERRORS = ErrorTable(
    errors.STATUSES
    | {
        errors.UnknownGlossaryError: 404,
        errors.UnknownDictionaryError: 404,
        errors.MethodNotAllowedError: 404,
        errors.TextTooLongError: 413,
        UriTooLongError: 414,
        MediaTypeError: 415,
        errors.KeyMissingError: 403,
        errors.QuotaError: 456,
        errors.UnavailableError: 503,
        errors.CapacityError: 429,
    }
)
"""Status of each class; DeepL has no 405."""


class DeepL(Api):
    """The API."""

    name = "deepl"
    key_parameters = ("auth_key",)
    key_fields = ("auth_key",)
    key_place = "in the header `Authorization: DeepL-Auth-Key KEY`"

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"message": "…"}`, with `detail` where `message` has words that clients search for."""
        status = ERRORS[error]
        return error_answer(error, status, _body(error, status))


API = DeepL()


def unsupported(field: str) -> InvalidFieldError:
    """DeepL's sentence for a value that is not supported; clients search for these words."""
    return InvalidFieldError(f"Value for '{field}' not supported.")


def missing(field: str) -> InvalidFieldError:
    """DeepL's sentence for a field that is required and missing."""
    return InvalidFieldError(f"Parameter '{field}' not specified.")


def _body(error: RequestError, status: int) -> dict[str, str]:
    match error:
        case errors.InvalidGlossaryError():
            return {"message": "Invalid glossary entries provided", "detail": str(error)}
        case errors.SourceNotServedError() | errors.SourceUnclearError():
            return {"message": str(error)}
        case errors.LanguageError():
            field = "source_lang" if error.side == "source" else "target_lang"
            return {"message": str(unsupported(field)), "detail": str(error)}
        case errors.UnsupportedFileError() | errors.BrokenFileError():
            return {"message": "Invalid file data.", "detail": str(error)}
        case errors.QuotaError():
            return {"message": "Quota Exceeded", "detail": str(error)}
        case errors.CapacityError() if status == 429:
            return {"message": "Too many requests", "detail": str(error)}
    return {"message": str(error)}
