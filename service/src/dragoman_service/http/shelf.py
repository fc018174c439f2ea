"""Translated files until they are fetched: in memory, for a while, and no more than fit."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

KEPT_S = 30 * 60
"""As long as LibreTranslate keeps them."""

MOST_KEPT_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class Shelved:
    """A file that waits.

    Args:
        name: For the one who saves it.
        content: Its bytes.
        until_s: When it is thrown away, by the shelf's clock.
    """

    name: str
    content: bytes
    until_s: float


class Shelf:
    """Files by key; the oldest make room for new ones. Used from the event loop alone.

    Args:
        kept_s: Seconds that a file is kept.
        most_bytes: What all files together may have.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        kept_s: float = KEPT_S,
        most_bytes: int = MOST_KEPT_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kept_s, self._most_bytes, self._clock = kept_s, most_bytes, clock
        self._files: OrderedDict[str, Shelved] = OrderedDict()
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """What the files on it have together."""
        return self._bytes

    def put(self, key: str, name: str, content: bytes) -> None:
        """Keep a file; it may be fetched more than once.

        Args:
            key: Hard to guess: it is all that fetching takes.
            name: For the one who saves it.
            content: Its bytes.
        """
        self._files[key] = Shelved(name, content, self._clock() + self._kept_s)
        self._bytes += len(content)
        while self._bytes > self._most_bytes or self._oldest_is_over():
            self._drop(next(iter(self._files)))

    def get(self, key: str) -> Shelved | None:
        """The file, or None where there is none, or no longer."""
        while self._oldest_is_over():
            self._drop(next(iter(self._files)))
        return self._files.get(key)

    def take(self, key: str) -> Shelved | None:
        """The same, and it is there no longer."""
        found = self.get(key)
        if found is not None:
            self._drop(key)
        return found

    def _oldest_is_over(self) -> bool:
        return bool(self._files) and next(iter(self._files.values())).until_s <= self._clock()

    def _drop(self, key: str) -> None:
        self._bytes -= len(self._files.pop(key).content)
