"""HTML and XML as runs of text with inline tags, and the source between the runs."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dragoman_protocols.markup_tokens import Token, TokenKind, tokens

# fmt: off
INLINE = frozenset({
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "code", "data", "del", "dfn",
    "em", "font", "i", "img", "input", "ins", "kbd", "label", "map", "mark", "math", "nobr", "output",
    "q", "rp", "rt", "ruby", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "svg",
    "time", "tt", "u", "var", "wbr", "x",
})
# fmt: on
"""HTML elements that stand within a sentence; names with a hyphen (custom elements) do so too."""

# fmt: off
OPAQUE = frozenset({
    "code", "kbd", "samp", "var", "pre", "math", "svg", "script", "style", "textarea", "template",
    "noscript", "object", "rp", "rt",
})
# fmt: on
"""HTML elements whose content is not language, or only how a word is read."""

ENDLESS = re.compile(r"&(?=#[0-9]{8})")
"""No character has a number of eight digits; Python refuses to read thousands of digits as a number."""


@dataclass(frozen=True)
class MarkupRules:
    """How a document's elements are treated, beyond the rules of HTML.

    Args:
        html: HTML's rules; otherwise XML's, where an element is inline if text stands beside it.
        ignore_tags: Elements that are never translated.
        splitting_tags: Elements that always end a sentence.
        non_splitting_tags: Elements that never do.
    """

    html: bool
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text, an inline tag, something opaque, or a boundary.

    Args:
        kind: `text`, `open` and `close` (inline tags that belong together), `alone` (something inline that
            is not translated) or `boundary`.
        pair: The same number on both tags of a pair; 0 on all else.
    """

    raw: str
    kind: str
    pair: int = 0


@dataclass(slots=True)
class _Element:
    """An open element while its source is read."""

    index: int
    name: str
    has_text: bool = False


@dataclass(frozen=True)
class _Structure:
    """For tokens by index: where elements end, and whether text stands beside them."""

    ends: dict[int, int]
    closed: frozenset[int]
    mixed: frozenset[int]


def chunks(source: str, rules: MarkupRules) -> Iterator[Chunk]:
    """The chunks of a document; their `raw`, joined, is `source`."""
    read = list(tokens(source, rules.html))
    structure = _structure(read)
    partner = {structure.ends[start]: start for start in structure.closed}
    index = 0
    while index < len(read):
        token = read[index]
        inline = _is_inline(index, token, rules, structure)
        if token.kind is TokenKind.TEXT:
            yield Chunk(token.raw, "text")
        elif token.kind is TokenKind.OTHER or token.kind is TokenKind.EMPTY:
            yield Chunk(token.raw, "alone" if inline else "boundary")
        elif token.kind is TokenKind.OPEN and _is_opaque(token, rules):
            after = structure.ends[index] + (index in structure.closed)
            raw = "".join(inner.raw for inner in read[index:after])
            ended = index in structure.closed or _is_in_ruby(token, read, after)
            yield Chunk(raw, "alone" if inline and ended else "boundary")
            index = after
            continue
        elif token.kind is TokenKind.OPEN:
            paired = inline and index in structure.closed
            yield Chunk(token.raw, "open", index + 1) if paired else Chunk(token.raw, "boundary")
        else:
            start = partner.get(index, -1)
            paired = start >= 0 and _is_inline(start, read[start], rules, structure)
            yield Chunk(token.raw, "close", start + 1) if paired else Chunk(token.raw, "boundary")
        index += 1


def _structure(read: Sequence[Token]) -> _Structure:
    """Match start and end tags; tags that are not nested correctly have no partner."""
    root = _Element(-1, "")
    stack = [root]
    still_open: Counter[str] = Counter()
    ends: dict[int, int] = {}
    closed: set[int] = set()
    inside: dict[int, _Element] = {}
    for index, token in enumerate(read):
        if token.kind is TokenKind.TEXT:
            stack[-1].has_text |= not token.raw.isspace()
        elif token.kind is TokenKind.OPEN:
            inside[index] = stack[-1]
            stack.append(_Element(index, token.name))
            still_open[token.name] += 1
        elif token.kind is TokenKind.CLOSE and still_open[token.name]:
            while (element := stack.pop()).name != token.name:
                ends[element.index] = index
                still_open[element.name] -= 1
            ends[element.index] = index
            closed.add(element.index)
            still_open[token.name] -= 1
        elif token.kind is not TokenKind.CLOSE:
            inside[index] = stack[-1]
    for element in stack[1:]:
        ends[element.index] = len(read)
    mixed = frozenset(index for index, parent in inside.items() if parent.has_text)
    return _Structure(ends, frozenset(closed), mixed)


def _is_inline(index: int, token: Token, rules: MarkupRules, structure: _Structure) -> bool:
    if token.name in rules.splitting_tags:
        return False
    if token.name in rules.non_splitting_tags:
        return True
    if token.kind is TokenKind.OTHER:
        return not token.raw.startswith("<!D") and not token.raw.startswith("<!d")
    if rules.html:
        return token.name in INLINE or "-" in token.name
    return index in structure.mixed


def _is_in_ruby(token: Token, read: Sequence[Token], after: int) -> bool:
    """Whether the end of a reading may be left out: that of its `<ruby>` follows."""
    return token.name in ("rp", "rt") and after < len(read) and read[after].name == "ruby"


def _is_opaque(token: Token, rules: MarkupRules) -> bool:
    if token.name in rules.ignore_tags:
        return True
    if not rules.html:
        return token.attribute("translate") == "no"
    return (
        token.name in OPAQUE
        or token.attribute("translate") == "no"
        or "notranslate" in (token.attribute("class") or "").split()
    )


def unescaped(text: str) -> str:
    """`html.unescape` for untrusted text: references to invalid code points stay unchanged."""
    return html.unescape(ENDLESS.sub("&amp;", text))
