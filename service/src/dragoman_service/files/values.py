"""Which values of a data file are language, for files that do not say so themselves."""

from __future__ import annotations

import re

import regex

from dragoman_protocols.glossaries.matching import UNSPACED
from dragoman_service.text.placeholder_families import family_pattern
from dragoman_service.text.placeholders import placeholders

HELD = "\ufffc"
"""Stands for a placeholder."""

SIGN = r"[_./\\:#@=&?+]"
CODE = re.compile(rf"\S*[^\W_]{HELD}?{SIGN}(?:{HELD}{SIGN}?)*[^\W_]\S*|[#.@$/\\]\S+|\S*_\S*")
"""One word with a sign of a path, a name or an address in it."""

ADDRESS = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:[/\\]|\.{0,2}/)[\w./\\:#@=&?+%~-]+")
"""A URL or a path, in any script: sentences have other punctuation, and do not begin so."""

PAIR = regex.compile(
    r"(?!(?:Africa|America|Antarctica|Arctic|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc|US)/)"
    r"\p{Lu}\p{Ll}+(?:[/:&]\p{Lu}\p{Ll}+){1,5}"
    r"|(?:(?:and|or|he|she|his|her|him|hers|yes|no|on|off|in|out|up|down|true|false|to|from|with|without|left|right)"
    r"(?:/|(?=\W*+$))){2,5}"
    r"|(?:\p{Lu}\p{Ll}*)?&\p{L}\p{Ll}*"
)
"""Words that people read with a sign between them (`Yes/No`, `and/or`; no time zones), or with an access key's."""

DIRECTIVE = regex.compile(r"%[-_^0#]?[A-Za-z]")
"""Of a date's or a number's format, as in `%B %d, %Y` and `%u%n`."""

MAX_CODE_CHARS = 200
"""A longer value is no name; matching takes time quadratic in it."""

LETTER = regex.compile(r"\p{L}")
CONTROL = regex.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
"""Characters that XML does not have."""


def is_language(value: str) -> bool:
    """Whether a value is likely to be read by people: it has letters and is no path, address or name of code."""
    word = value.strip()
    is_short = len(word) <= MAX_CODE_CHARS
    if is_short and ADDRESS.fullmatch(word):
        return False
    words = _held(word)
    if LETTER.search(words) is None or (is_short and LETTER.search(DIRECTIVE.sub("", words)) is None):
        return False
    if is_short and PAIR.fullmatch(word.rstrip(".…:!? ")):
        return True
    # Where words are written without blanks, a whole sentence looks like one word.
    return not is_short or UNSPACED.search(words) is not None or CODE.fullmatch(words) is None


def _held(text: str) -> str:
    """The text with a sign for each placeholder: what is in them says nothing about the text."""
    parts: list[str] = []
    position = 0
    for found in placeholders(text):
        parts += (text[position : found.start], HELD)
        position = found.end
    return family_pattern().sub(HELD, "".join([*parts, text[position:]]))


def in_xml(text: str) -> str:
    """A text without the characters that XML does not have."""
    return CONTROL.sub("", text)
