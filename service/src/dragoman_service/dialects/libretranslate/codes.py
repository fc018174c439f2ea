"""LibreTranslate's language codes: BCP-47 but for three names of its models, which it takes and never gives."""

from __future__ import annotations

AUTO = "auto"
"""Asks for detection."""

TAGS = {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"}
"""Source: `aliases` in libretranslate/language.py."""

GIVEN = {"fil": "tl"}
"""Codes that its models have where BCP-47 prefers another."""


def to_tag(code: str) -> str:
    """The BCP-47 tag of a code.

    Args:
        code: As a client sends it, in any casing; `zh` is Simplified Chinese.
    """
    return TAGS.get(code.lower(), code)


def from_tag(tag: str) -> str:
    """The code that clients are given for a BCP-47 tag."""
    return GIVEN.get(tag.lower()) or TAGS.get(tag.lower(), tag)
