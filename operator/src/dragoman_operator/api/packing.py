"""What the operator remembers in a status: JSON as a word, which people need not read, at a third of the size."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

MOST_BYTES = 1 << 20


def packed(text: str) -> str:
    """The text as a word."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def unpacked(word: Any) -> str:
    """The text again.

    Raises:
        ValueError: It is no such word.
    """
    try:
        raw = base64.b64decode(str(word), validate=True)
        return zlib.decompressobj().decompress(raw, MOST_BYTES).decode()
    except (binascii.Error, zlib.error) as error:
        raise ValueError("no packed text") from error
