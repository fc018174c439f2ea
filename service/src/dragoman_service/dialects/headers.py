"""Headers that say the same in every dialect."""

from __future__ import annotations

from dragoman_protocols.errors import (
    BodyTooLargeError,
    CapacityError,
    DrainingError,
    EngineDeadError,
    RequestError,
)


def headers_for(error: RequestError) -> dict[str, str]:
    """When to come back, and whether to do so on another connection.

    Args:
        error: What is answered.
    """
    headers = {}
    if isinstance(error, CapacityError):
        headers["Retry-After"] = str(error.retry_after_s)
    if isinstance(error, DrainingError | EngineDeadError | BodyTooLargeError):
        headers["Connection"] = "close"
    return headers
