"""Footnotes, comments and frames of OpenDocument files, which stand within a sentence, as texts of their own."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman_protocols.errors import GenerationError

TAG = re.compile(
    r"<(?P<close>/)?(?P<name>text:(?:note|p|h|tracked-changes)|office:annotation|draw:frame)(?=[\s/>])[^<>]*?(?P<empty>/)?>"
)
PARAGRAPHS = frozenset({"text:p", "text:h"})
IGNORED = "text:tracked-changes"
RANGE = re.compile(
    r"<svg:desc>(?:'[^'<]{1,255}'|[^\s<'.:]{1,255})\.\$?[A-Z]{1,3}\$?\d{1,7}(?::[^<]{1,300})?</svg:desc>"
)
"""In a chart: the cells that a label comes from."""
STUB = re.compile(r'<x id="(\d{1,9})"/>')


def apart(text: str) -> list[str]:
    """A part with `<x id="…"/>` in the place of each note, comment and frame within a paragraph, and then these.

    Args:
        text: Of a part, as lxml writes it: no attribute has a `>`.
    """
    outside: list[str] = []
    inner: list[str] = []
    depth = paragraphs = position = start = 0
    is_ignored = False
    for tag in TAG.finditer(text):
        change = 0 if tag["empty"] else -1 if tag["close"] else 1
        name = tag["name"]
        if name == IGNORED:
            is_ignored = change > 0
        elif name in PARAGRAPHS:
            paragraphs += change if not depth else 0
        elif not is_ignored and (paragraphs > 0 or depth):
            if change > 0 and not depth:
                start = tag.start()
            depth += change
            if change < 0 and not depth:
                outside += (text[position:start], f'<x id="{len(inner)}"/>')
                inner.append(text[start : tag.end()])
                position = tag.end()
    return ["".join([*outside, text[position:]]), *inner]


def together(texts: Sequence[str]) -> str:
    """The part of translations of what `apart` returned.

    Raises:
        GenerationError: A note, comment or frame was lost or doubled.
    """
    whole, *inner = texts
    if sorted(int(each) for each in STUB.findall(whole)) != list(range(len(inner))):
        raise GenerationError("a footnote, comment or frame was lost in the translation; ask again")
    joined = STUB.sub(lambda stub: inner[int(stub[1])], whole)
    return joined.replace("<ranges>", "").replace("</ranges>", "")
