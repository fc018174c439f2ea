"""How much was translated, as `/v2/usage` tells and a limit bounds it."""

from __future__ import annotations

from dragoman_service.errors import QuotaError

UNLIMITED = 1_000_000_000_000
"""What DeepL itself names as the limit of those who have none."""


class Usage:
    """Characters translated since the pod began; used from the event loop alone.

    Args:
        limit_chars: After how many no more is translated; None is never.
    """

    def __init__(self, limit_chars: int | None = None) -> None:
        self._limit_chars = limit_chars
        self._used_chars = 0

    def check(self, chars: int) -> None:
        """Whether so many more may be translated.

        Raises:
            QuotaError: They may not.
        """
        if self._limit_chars is not None and self._used_chars + chars > self._limit_chars:
            raise QuotaError(
                f"{self._used_chars} of {self._limit_chars} characters are used, {chars} more were asked for"
            )

    def add(self, chars: int) -> None:
        """So many were translated."""
        self._used_chars += chars

    def answer(self) -> dict[str, int]:
        """The body of `/v2/usage`."""
        return {
            "character_count": self._used_chars,
            "character_limit": UNLIMITED if self._limit_chars is None else self._limit_chars,
        }
