"""Translation memories: files in TMX, read as segments or, the short ones, as terms.

Source: https://www.gala-global.org/tmx-14b
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from xml.parsers import expat

from dragoman_protocols.errors import InvalidFieldError

MAX_TERM_WORDS = 4
MAX_TERM_CHARS = 60
"""A longer segment is a sentence, which a glossary would match only as a whole."""

SENTENCE_END = re.compile(r"[.!?…。！？।۔؟;；]$")
CODES = frozenset({"bpt", "ept", "ph", "it", "ut", "sub"})
"""Inline elements whose content is no text of the segment."""


def decoded(content: bytes) -> str:
    """The text of a file: UTF-8, or UTF-16 with a byte order mark, which some tools write.

    Raises:
        ValueError: It is neither.
    """
    is_utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    try:
        return content.decode("utf-16" if is_utf16 else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"no TMX in UTF-8 or UTF-16: {error.reason} at byte {error.start}") from None


def read_terms(text: str, source_lang: str | None, target_lang: str) -> tuple[tuple[str, str], ...]:
    """Terms and their translations, in the order of the file. Linear in its length.

    Args:
        text: The file. A document type may be named, as TMX files do, but nothing may be declared in it.
        source_lang: BCP-47 tag; None: the language that the file's header names as its source. Regions do not count.
        target_lang: BCP-47 tag.

    Raises:
        ValueError: It is no TMX; the message has the line if it is known.
    """
    source = None if source_lang is None else _primary(source_lang)
    return _read(text, _Reader(source, _primary(target_lang), _are_terms, with_codes=False))


def read_units(text: str, source_lang: str | None, target_lang: str) -> tuple[tuple[str, str], ...]:
    """Segments and their translations, in the order of the file. Linear in its length.

    The native code that inline elements contain is a part of the segment: `<ph>{0}</ph>` is `{0}`. A segment with an
    inline element that contains none is left out, for it would match another text.

    Args:
        text: As of `read_terms`.
        source_lang: BCP-47 tag; None: the language that the file's header names as its source. Segments of this very
            tag come before those of other regions.
        target_lang: The same of the translations.

    Raises:
        ValueError: It is no TMX; the message has the line if it is known.
    """
    return _read(text, _Reader(source_lang, target_lang, _are_texts, with_codes=True))


def _read(text: str, reader: _Reader) -> tuple[tuple[str, str], ...]:
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
        (source, max(found, key=lambda target: found[target])) for source, found in reader.found.items()
    )


class _Reader:
    """Collects the segments of a unit, and its pair at its end.

    Args:
        wanted: Whether a pair is collected.
        with_codes: Whether what inline elements contain is a part of segments.

    Attributes:
        found: Translations by source, with their numbers.
    """

    def __init__(
        self, source: str | None, target: str, wanted: Callable[[str, str], bool], *, with_codes: bool
    ) -> None:
        self._source, self._target = source, target
        self._wanted, self._with_codes = wanted, with_codes
        self._unit: dict[str, str] = {}
        self._lang = ""
        self._segment: list[str] | None = None
        self._codes: list[int] = []
        self._pieces = 0
        self._is_whole = True
        self.is_tmx = False
        self.found: dict[str, Counter[str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        if name == "tmx":
            self.is_tmx = True
        elif name == "header" and self._source is None:
            self._source = attributes.get("srclang", "")
        elif name == "tu":
            self._unit = {}
        elif name == "tuv":
            self._lang = _tag(attributes.get("xml:lang") or attributes.get("lang") or "")
        elif name == "seg":
            self._segment, self._codes, self._is_whole = [], [], True
        elif name in CODES:
            self._codes.append(self._pieces)

    def end(self, name: str) -> None:
        """An element ends."""
        if name in CODES and self._codes:
            self._is_whole = self._codes.pop() < self._pieces and self._is_whole
        elif name == "seg" and self._segment is not None:
            if self._is_whole or not self._with_codes:
                self._unit.setdefault(self._lang, " ".join("".join(self._segment).split()))
            self._segment = None
        elif name == "tu":
            source, target = self._variant(self._source or ""), self._variant(self._target)
            if self._wanted(source, target):
                self.found.setdefault(source, Counter())[target] += 1

    def data(self, text: str) -> None:
        """Text of an element."""
        if self._segment is None:
            return
        self._pieces += 1
        if self._with_codes or not self._codes:
            self._segment.append(text)

    def _variant(self, tag: str) -> str:
        """The unit's segment in a language, or in another region's; empty if there is none."""
        tag = _tag(tag)
        if tag in self._unit:
            return self._unit[tag]
        return next((text for lang, text in self._unit.items() if _primary(lang) == _primary(tag)), "")


def _are_terms(source: str, target: str) -> bool:
    return _is_term(source) and _is_term(target)


def _are_texts(source: str, target: str) -> bool:
    return bool(source and target)


def _is_term(text: str) -> bool:
    return (
        any(map(str.isalpha, text))
        and len(text) <= MAX_TERM_CHARS
        and text.count(" ") < MAX_TERM_WORDS
        and SENTENCE_END.search(text) is None
    )


def _tag(tag: str) -> str:
    return tag.strip().lower().replace("_", "-")


def _primary(tag: str) -> str:
    return _tag(tag).partition("-")[0]


def _refuse_entity(name: str, *_: object) -> None:
    raise ValueError(f"no TMX that can be read: it declares the entity {name[:40]!r}")


def segment_key(segment: str) -> str:
    """What two segments have in common that are the same but for white space, in which files differ."""
    return " ".join(segment.split())


def read_memory(content: bytes, source_lang: str | None, target_lang: str) -> dict[str, str]:
    """`TranslationRequest.memory` of a file; of no file none.

    Args:
        content: TMX; empty: no file.
        source_lang: BCP-47 tag; None: the language that the file's header names.
        target_lang: The same of the translations.

    Raises:
        InvalidFieldError: It cannot be read, or has no segment of the pair.
    """
    if not content:
        return {}
    try:
        units = read_units(decoded(content), source_lang, target_lang)
    except ValueError as error:
        raise InvalidFieldError(f"memory: {error}") from None
    if not units:
        source = source_lang or "the language of its header"
        raise InvalidFieldError(f"memory: no segment has a translation from {source} into {target_lang}")
    memory: dict[str, str] = {}
    for segment, translation in units:
        memory.setdefault(segment_key(segment), translation)
    return memory
