"""How much was translated, as `/v2/usage` tells and a limit bounds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from dragoman_protocols.errors import QuotaError

UNLIMITED = 1_000_000_000_000
"""What DeepL itself names as the limit of those who have none."""


class Usage:
    """Characters translated since the pod began; may be used from any thread.

    Args:
        limit_chars: After how many no more is translated; None is never.
    """

    def __init__(self, limit_chars: int | None = None) -> None:
        self._limit_chars = limit_chars
        self._used_chars = self._reserved_chars = 0
        self._adding = Lock()

    @contextmanager
    def reserve(self, chars: int) -> Iterator[None]:
        """Hold so many characters while they are translated: requests at the same time share what is left.

        Raises:
            QuotaError: There are not so many left.
        """
        used_chars = self._used_chars + self._reserved_chars
        if self._limit_chars is not None and used_chars + chars > self._limit_chars:
            raise QuotaError(
                f"{used_chars} of {self._limit_chars} characters are used, {chars} more were asked for"
            )
        self._reserved_chars += chars
        try:
            yield
        finally:
            self._reserved_chars -= chars

    def add(self, chars: int) -> None:
        """So many were translated."""
        with self._adding:
            self._used_chars += chars

    def answer(self) -> dict[str, int]:
        """The body of `/v2/usage`."""
        return {
            "character_count": self._used_chars,
            "character_limit": UNLIMITED if self._limit_chars is None else self._limit_chars,
        }
