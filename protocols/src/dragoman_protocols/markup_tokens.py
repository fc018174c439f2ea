"""HTML and XML as tokens; joined, they are the source, also if it is malformed.

Lenient as browsers are: what is no tag is text. The parsers of the standard library, lxml and html5lib
build trees and forget how the source was written.

Source: https://html.spec.whatwg.org/multipage/parsing.html#tokenization
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import regex

RAW_TEXT = frozenset({"script", "style", "textarea", "xmp", "iframe", "noembed", "noframes", "plaintext"})
"""HTML elements whose content holds no tags."""

VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
"""HTML elements without an end tag."""

TAG = regex.compile(
    r"""<(?P<close>/)?(?P<name>(?:[^\W\d]|:)[^\s/>]*+)
    (?P<attributes>(?:
        [\s/]++
        | [^\s/>][^\s/>=]*+ (?: \s*+ = \s*+ (?: "[^"]*+" | '[^']*+' | [^\s"'>][^\s>]*+ | (?=>) ) )?+
    )*+)>""",
    regex.VERBOSE,
)
TAG_START = regex.compile(r"</?(?:[^\W\d]|:)")
PLAIN_TAG = regex.compile(r"<(?P<close>/)?(?P<name>(?:[^\W\d]|:)[^\s/<>]*+)(?P<attributes>[^<>]*+)>")
"""For the rest of a source in which a tag does not end: looks no further than the next angle bracket."""

ATTRIBUTE = regex.compile(r"""(?<![^\s/>=])([^\s/>=]++)\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""")

CLOSINGS = (("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"))
"""How comments, CDATA sections and processing instructions end."""


class TokenKind(StrEnum):
    """What a token is."""

    TEXT = "text"
    OPEN = "open"
    CLOSE = "close"
    EMPTY = "empty"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Token:
    """One piece of the source.

    Args:
        kind: `OTHER` is what has neither text nor structure: comments, CDATA, scripts, declarations.
        raw: As the source has it.
        name: Of a tag, in HTML in lower case; empty otherwise.
        attributes: Of a tag, as the source has them.
    """

    kind: TokenKind
    raw: str
    name: str = ""
    attributes: str = ""

    def attribute(self, name: str) -> str | None:
        """The value of an attribute in lower case, None if the tag has none with a value."""
        for found in ATTRIBUTE.finditer(self.attributes):
            if found[1].lower() == name:
                return (found[2] or found[3] or found[4] or "").lower()
        return None


def tokens(source: str, html: bool) -> Iterator[Token]:
    """The tokens of a document or fragment. Time grows linearly with it.

    Args:
        source: HTML or XML, well formed or not.
        html: Whether HTML's rules hold: names without case, void elements, raw text.

    Returns:
        Tokens whose `raw`, joined, is `source`.
    """
    position = text_start = 0
    pattern = TAG
    while (start := source.find("<", position)) >= 0:
        token, pattern = _markup(source, start, html, pattern)
        if token is None:
            position = start + 1
            continue
        if start > text_start:
            yield Token(TokenKind.TEXT, source[text_start:start])
        yield token
        position = text_start = start + len(token.raw)
        if html and token.kind is TokenKind.OPEN and token.name in RAW_TEXT:
            end = _raw_text_end(source, position, token.name)
            if end > position:
                yield Token(TokenKind.OTHER, source[position:end])
            position = text_start = end
    if text_start < len(source):
        yield Token(TokenKind.TEXT, source[text_start:])


def _markup(
    source: str, start: int, html: bool, pattern: regex.Pattern[str]
) -> tuple[Token | None, regex.Pattern[str]]:
    """The token that begins with the `<` at `start`, None if that is text; and the pattern from here on."""
    if source.startswith(("<!", "<?"), start):
        return Token(TokenKind.OTHER, source[start : _declaration_end(source, start)]), pattern
    if not TAG_START.match(source, start):
        return None, pattern
    found = pattern.match(source, start)
    if not found and pattern is TAG:  # it ran to the end of the source: never look that far again
        pattern = PLAIN_TAG
        found = pattern.match(source, start)
    if not found:
        return None, pattern
    # A document has millions of few different tags.
    name = sys.intern(found["name"].lower() if html else found["name"])
    attributes = found["attributes"] or ""
    if found["close"]:
        kind = TokenKind.CLOSE
    elif (html and name in VOID) or (attributes.endswith("/") and not (html and name in RAW_TEXT)):
        kind = TokenKind.EMPTY
    else:
        kind = TokenKind.OPEN
    return Token(kind, sys.intern(found[0]), name, attributes), pattern


def _declaration_end(source: str, start: int) -> int:
    """Behind a comment, CDATA section, doctype or processing instruction; the end if it is not closed."""
    closing = next((closing for opening, closing in CLOSINGS if source.startswith(opening, start)), ">")
    if closing == ">":
        head = source[start : start + 1000]
        if "[" in head.partition(">")[0]:  # a doctype with declarations of its own
            closing = "]>"
    end = source.find(closing, start + 2)
    return len(source) if end < 0 else end + len(closing)


def _raw_text_end(source: str, start: int, name: str) -> int:
    found = regex.compile(rf"</{name}(?=[\s/>])", regex.IGNORECASE).search(source, start)
    return found.start() if found else len(source)
