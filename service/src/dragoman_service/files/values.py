"""Which values of a data file are language, for files that do not say so themselves."""

from __future__ import annotations

import re

import regex

CODE = re.compile(r"\S*[^\W_][_./\\:#@=&?+][^\W_]\S*|[#.@$/\\]\S+|\S*_\S*")
"""One word with a sign of a path, a name or an address in it."""

MAX_CODE_CHARS = 200
"""A longer value is no name; matching takes time quadratic in it."""

LETTER = regex.compile(r"\p{L}")
CONTROL = regex.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML does not have."""


def is_language(value: str) -> bool:
    """Whether a value is likely to be read by people: it has letters and is no path, address or name of code."""
    if LETTER.search(value) is None:
        return False
    word = value.strip()
    return len(word) > MAX_CODE_CHARS or CODE.fullmatch(word) is None


def in_xml(text: str) -> str:
    """A text without the characters that XML does not have."""
    return CONTROL.sub("", text)
