"""Placeholders for programs in a text: `{name}`, `%s`, ICU arguments, URLs, addresses, code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

NAMES = (
    # Ends before closing punctuation and before scripts that write no space behind an address.
    (
        "url",
        r"(?:(?:https?|ftps?|wss?|file)://|(?<![\w.--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]])www\.)"
        r"[\w\-.~:/?#\[\]@!$&'()*+,;=%--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]]*"
        r"[\w/#=&~\-$%+--[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]]",
    ),
    (
        "email",
        r"(?<![\w.%+\---[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}]])[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}+@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}",
    ),
    # GNU's quotes, "`read' or `skip'", are none.
    (
        "code",
        r"(?<!`)(?P<ticks>`{1,3}+)(?!`)(?![^`'\n]{1,200}+'(?!\p{Latin})[^`\n]{0,1000}+(?<=[\s(/,\p{Lo}]))"
        r"[^`\n]{1,1000}+(?P=ticks)(?!`)",
    ),
    (
        "mustache",
        r"\{\{\{?[^{}\n]{1,200}+\}\}\}?|\{%(?:(?!%\}|\{%)[^\n]){1,200}+%\}|<%(?:(?!%>)[^<>\n]){1,200}+%>",
    ),
    # https://docs.python.org/3/library/stdtypes.html#printf-style-string-formatting and POSIX printf's %1$d;
    # the space flag is left out, for "100 % sure" is more common than "% d".
    (
        "printf",
        r"%%|%(?:\d{1,2}\$)?(?:\([\w.\- ]{1,64}\))?[\-+#0]{0,3}(?:\d{1,4}|\*(?:\d{1,2}\$)?)?"
        r"(?:\.(?:\d{1,4}|\*(?:\d{1,2}\$)?)?)?"
        r"(?:hh|h|ll|l|L|q|j|z|t)?[diouxXeEfFgGaAcrsp@](?![A-Za-z0-9])",
    ),
    ("brace", r"[$#%@]?\{(?!\{)"),
)
PATTERN = regex.compile("|".join(f"(?P<{name}>{pattern})" for name, pattern in NAMES), regex.VERSION1)

SIGNS = re.compile(r"[{%`@]|://|www\.")
"""One of these is in each of them; most texts have none, which is found out in a twentieth of the time."""

ARGUMENT = regex.compile(r"\{\s*+(?:[\w.$\-]|\[\w*\]){0,100}+(?:![rsa])?(?::[^{}\s]{0,40})?\s*+\}")
"""`{}`, `{0}`, `{user.name!r:>10}`. Source: https://docs.python.org/3/library/string.html#format-string-syntax"""

UNNUMBERED = regex.compile(r"%(?!\d{1,2}\$|[({%])|\{(?=[!:}])")
"""Begins what is filled by its order; the values of `%(name)s` and of Ruby's `%{name}` have a name."""

ICU = regex.compile(
    r"\{\s*[\w.\-]{1,100}+\s*,"
    r"\s*(?:plural|select|selectordinal|number|date|time|spellout|ordinal|duration|choice|list)\s*[,}]"
)
"""How an ICU argument with a type begins. Source: https://unicode-org.github.io/icu/userguide/format_parse/messages/"""

MAX_ICU_CHARS = 20_000
"""Longer than any message; bounds the search for the end of an ICU argument."""


@dataclass(frozen=True)
class Placeholder:
    """A part of a text that is returned unchanged.

    Args:
        kind: `url`, `email`, `code`, `mustache`, `printf`, `brace`, or one of the caller's own.
        start: Character offset in the text it was found in.
    """

    text: str
    kind: str
    start: int

    @property
    def end(self) -> int:
        """Character offset behind it."""
        return self.start + len(self.text)


def placeholders(text: str) -> Iterator[Placeholder]:
    """The placeholders of a text, in order, none within another. Time grows linearly with the text."""
    if SIGNS.search(text) is None:
        return
    position = 0
    ends: dict[int, int] | None = None
    while found := PATTERN.search(text, position):
        kind, start, end = found.lastgroup or "", found.start(), found.end()
        if kind == "ticks":
            kind = "code"
        if kind == "brace":
            ends = _brace_ends(text) if ends is None else ends
            end = _argument_end(text, end - 1, ends)
        if end == 0:
            position = found.end()
            continue
        yield Placeholder(text[start:end], kind, start)
        position = end


def numbered(found: Iterable[Placeholder]) -> Iterator[str]:
    """Their texts, with a number for what is filled by its order: the first `%s` is `%1$s`, the first `{}` is `{0}`."""
    values = fields = 0
    for each in found:
        text = each.text
        if each.kind == "printf" and UNNUMBERED.match(text):
            start, *widths = text[1:].split("*")
            for width in widths:
                values += 1
                start += f"*{values}${width}"
            values += 1
            text = f"%{values}${start}"
        elif each.kind == "brace" and UNNUMBERED.match(text):
            text = f"{{{fields}{text[1:]}"
            fields += 1
        yield text


def _argument_end(text: str, brace: int, ends: dict[int, int]) -> int:
    """The end of the argument that starts at `brace`; 0 if there is none."""
    if simple := ARGUMENT.match(text, brace):
        return int(simple.end())
    if ICU.match(text, brace) and brace in ends:
        return ends[brace]
    return 0


def _brace_ends(text: str) -> dict[int, int]:
    """The offset after the `}` of each closed `{`."""
    open_braces: list[int] = []
    ends: dict[int, int] = {}
    for found in regex.finditer(r"[{}]", text):
        if found[0] == "{":
            open_braces.append(found.start())
        elif open_braces:
            start = open_braces.pop()
            if found.end() - start <= MAX_ICU_CHARS:
                ends[start] = found.end()
    return ends
