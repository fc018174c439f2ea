"""Encoding of the operator's state in a status: compressed JSON, a third of the size."""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

MAX_BYTES = 1 << 20


def encode_state(text: str) -> str:
    """The text, compressed and in Base64."""
    return base64.b64encode(zlib.compress(text.encode(), 9)).decode()


def decode_state(word: Any) -> str:
    """The text of `encode_state`.

    Raises:
        ValueError: `word` is not encoded text.
    """
    try:
        raw = base64.b64decode(str(word), validate=True)
        return zlib.decompressobj().decompress(raw, MAX_BYTES).decode()
    except (binascii.Error, zlib.error) as error:
        raise ValueError("not an encoded state") from error
