"""Azure's numbers for errors: six digits, the first three of which are the HTTP status.

Source: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/status-response-codes
"""

from __future__ import annotations

from typing import Any

from dragoman_protocols.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    EngineDeadError,
    MalformedRequestError,
    RequestError,
    TextTooLongError,
    UnknownLanguageError,
    UnsupportedPairError,
)

NUMBERS: tuple[tuple[type[RequestError], int], ...] = (
    (MalformedRequestError, 400074),
    (BodyTooLargeError, 400077),
    (TextTooLongError, 400050),
    (UnknownLanguageError, 400019),
    (UnsupportedPairError, 400023),
    (CallerError, 400000),
    (CapacityError, 503000),
    (EngineDeadError, 503000),
    (DeadlineExceededError, 504000),
    (RequestError, 500000),
)
"""The first class that fits an error gives its number; 504000 is ours, Azure has none for it."""

STATUSES = {
    400: "400000 a field, 400019 a language, 400021 api-version, 400023 the pair, 400035 from, 400036 to, "
    "400050 a text too long, 400071 textType, 400072 too many texts, 400074 no JSON, 400077 too many characters",
    500: "500000 the model did not translate",
    503: "503000 loading, draining or overloaded; with Retry-After",
    504: "504000 not finished in time",
}


class AzureRefusal(CallerError):
    """Something that Azure has a number of its own for.

    Args:
        number: Six digits.
        message: What is wrong and what to do about it.
    """

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.number = number


def number_of(error: RequestError) -> int:
    """Azure's number for an error."""
    if isinstance(error, AzureRefusal):
        return error.number
    return next(number for cause, number in NUMBERS if isinstance(error, cause))


def body_of(number: int | str, message: str) -> dict[str, Any]:
    """The one shape of errors."""
    return {"error": {"code": number, "message": message}}
