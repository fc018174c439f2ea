"""The pod's own quota of characters, `--deepl-character-limit`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dragoman_protocols.api import Usage
from dragoman_protocols.errors import QuotaError


class Quota:
    """Characters translated since the pod started, with a maximum or none; used from the event loop alone."""

    def __init__(self, limit_chars: int | None = None) -> None:
        self._limit_chars = limit_chars
        self._used_chars = self._reserved_chars = 0

    @property
    def usage(self) -> Usage:
        """What was used, and the limit."""
        return Usage(self._used_chars, self._limit_chars)

    @contextmanager
    def reserve(self, chars: int) -> Iterator[None]:
        """Reserve characters while they are translated: concurrent requests share what is left.

        Raises:
            QuotaError: There are not so many left.
        """
        used_chars = self._used_chars + self._reserved_chars
        if self._limit_chars is not None and used_chars + chars > self._limit_chars:
            raise QuotaError(
                f"{used_chars} of {self._limit_chars} characters are used, {chars} more were requested"
            )
        self._reserved_chars += chars
        try:
            yield
        finally:
            self._reserved_chars -= chars

    def add(self, chars: int) -> None:
        """Count characters that were translated."""
        self._used_chars += chars
