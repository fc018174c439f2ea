"""Terms of a translation memory in TMX: its short segments, each with its most frequent translation.

Source: https://www.gala-global.org/tmx-14b
"""

from __future__ import annotations

import re
from collections import Counter
from xml.parsers import expat

MAX_TERM_WORDS = 4
MAX_TERM_CHARS = 60
"""A longer segment is a sentence, which a glossary would match only as a whole."""

SENTENCE_END = re.compile(r"[.!?…。！？।۔؟;；]$")
CODES = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})
"""Inline elements whose content is no text of the segment."""


def read_terms(text: str, source_lang: str | None, target_lang: str) -> tuple[tuple[str, str], ...]:
    """Terms and their translations, in the order of the file. Linear in its length.

    Args:
        text: The file. A document type may be named, as TMX files do, but nothing may be declared in it.
        source_lang: BCP-47 tag; None: the language that the file's header names as its source. Regions do not count.
        target_lang: BCP-47 tag.

    Raises:
        ValueError: It is no TMX; the message has the line if it is known.
    """
    reader = _Reader(None if source_lang is None else _primary(source_lang), _primary(target_lang))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.data
    parser.EntityDeclHandler = _refuse_entity
    try:
        # Its bytes: a declaration of another encoding would contradict a text.
        parser.Parse(
            re.sub(r"\A\ufeff?\s*<\?xml[^>]*\?>", "", text, count=1).encode("utf-8", "replace"), True
        )
    except expat.ExpatError as error:
        raise ValueError(f"no TMX: line {error.lineno}: {expat.ErrorString(error.code)}") from None
    if not reader.is_tmx:
        raise ValueError("no TMX: its root is not <tmx>")
    return tuple(
        (source, max(found, key=lambda target: found[target])) for source, found in reader.terms.items()
    )


class _Reader:
    """Collects the segments of a unit, and its term at its end.

    Attributes:
        terms: Translations by source, with their numbers.
    """

    def __init__(self, source: str | None, target: str) -> None:
        self._source, self._target = source, target
        self._unit: dict[str, str] = {}
        self._lang = ""
        self._segment: list[str] | None = None
        self._codes = 0
        self.is_tmx = False
        self.terms: dict[str, Counter[str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if name == "tmx":
            self.is_tmx = True
        elif name == "header" and self._source is None:
            self._source = _primary(attributes.get("srclang", ""))
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._lang = _primary(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name == "seg":
            self._segment, self._codes = [], 0
        elif name in CODES:
            self._codes += 1

    def end(self, name: str) -> None:
        """An element ends."""
        if name in CODES:
            self._codes -= 1
        elif name == "seg" and self._segment is not None:
            self._unit.setdefault(self._lang, " ".join("".join(self._segment).split()))
            self._segment = None
        elif name == "tu":
            source, target = self._unit.get(self._source or "", ""), self._unit.get(self._target, "")
            if _is_term(source) and _is_term(target):
                self.terms.setdefault(source, Counter())[target] += 1

    def data(self, text: str) -> None:
        """Text of an element."""
        if self._segment is not None and not self._codes:
            self._segment.append(text)


def _is_term(text: str) -> bool:
    return (
        any(map(str.isalpha, text))
        and len(text) <= MAX_TERM_CHARS
        and text.count(" ") < MAX_TERM_WORDS
        and SENTENCE_END.search(text) is None
    )


def _primary(tag: str) -> str:
    return re.split("[-_]", tag.strip().lower(), maxsplit=1)[0]


def _refuse_entity(name: str, *_: object) -> None:
    raise ValueError(f"no TMX that can be read: it declares the entity {name[:40]!r}")
