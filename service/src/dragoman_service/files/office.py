"""Word, PowerPoint, OpenDocument and EPUB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, islice

from lxml import etree

from dragoman_protocols.errors import BrokenFileError, GenerationError
from dragoman_protocols.markup_tokens import RAW_TEXT, Kind, tokens
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed, serialized
from dragoman_service.files.document import MAX_TEXTS, FileDocument
from dragoman_service.files.paragraphs import check_copies, paragraphs
from dragoman_service.files.plain import decoded

MAX_TEXT_BYTES = 8 * 1024 * 1024
"""Of XML, which takes ten times as much as a tree: several books."""

WORD_PARTS = re.compile(r"word/(document|header|footer|footnotes|endnotes|comments)\d*\.xml")
POWERPOINT_PARTS = re.compile(
    r"ppt/(slides/slide|notesSlides/notesSlide|diagrams/data|comments/comment)\d+\.xml"
)
OPENDOCUMENT_PARTS = re.compile(r"content\.xml|styles\.xml")
BOOK_PARTS = re.compile(r".*\.(x?html?)", re.IGNORECASE)

# fmt: off
OPENDOCUMENT_IGNORED = frozenset({
    "office:automatic-styles", "office:styles", "office:font-face-decls", "office:scripts", "office:settings",
    "text:tracked-changes", "text:sequence-decls", "text:page-number", "text:page-count", "text:date",
    "text:time", "text:sequence", "text:note-citation", "text:bookmark-ref", "text:chapter", "dc:creator",
    "dc:date", "meta:creator-initials", "draw:object", "math:math",
})
OPENDOCUMENT_BLOCKS = frozenset({"text:p", "text:h", "text:list-item", "table:table-cell", "text:note"})
OPENDOCUMENT_INLINE = frozenset({
    "text:span", "text:a", "text:s", "text:tab", "text:line-break", "text:soft-page-break", "text:bookmark",
    "text:bookmark-start", "text:bookmark-end", "text:ruby", "text:ruby-base",
})
# fmt: on
"""Source: OpenDocument 1.3, part 3, sections 5 and 6."""


def read_word(content: bytes) -> FileDocument:
    """A .docx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, WORD_PARTS, "word/document.xml")


def read_powerpoint(content: bytes) -> FileDocument:
    """A .pptx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, POWERPOINT_PARTS, "ppt/presentation.xml")


def read_opendocument(content: bytes) -> FileDocument:
    """An .odt, .odp or .ods file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive, names = _parts(content, OPENDOCUMENT_PARTS, "content.xml")
    texts = tuple(serialized(parsed(archive.part(name))).decode() for name in names)
    return FileDocument(
        texts,
        Format.XML,
        lambda translations: _rewritten(archive, names, translations),
        OPENDOCUMENT_IGNORED,
        OPENDOCUMENT_BLOCKS,
        OPENDOCUMENT_INLINE,
    )


def read_book(content: bytes) -> FileDocument:
    """An .epub file without copy protection; its chapters are translated, its metadata are not.

    Raises:
        BrokenFileError: It is none, or is damaged or protected.
    """
    archive, names = _parts(content, BOOK_PARTS, "META-INF/container.xml")
    if "META-INF/rights.xml" in archive.names:
        raise BrokenFileError("the book is copy-protected")
    texts = tuple(_as_html(decoded(archive.part(name), "utf-8-sig")) for name in names)
    return FileDocument(texts, Format.HTML, lambda translations: _rewritten(archive, names, translations))


def _as_html(chapter: str) -> str:
    """XHTML as HTML, which ignores that `<script/>` ends itself, and takes what follows for script."""
    return "".join(
        f"{token.raw[:-2]}></{token.name}>"
        if token.kind is Kind.EMPTY and token.name.lower() in RAW_TEXT
        else token.raw
        for token in tokens(chapter, html=False)
    )


def _parts(content: bytes, pattern: re.Pattern[str], needed: str) -> tuple[Archive, list[str]]:
    """The archive, and its parts with text."""
    archive = Archive(content)
    if needed not in archive.names:
        raise BrokenFileError(f"the file is no document of this kind: it has no {needed}")
    names = [name for name in archive.names if pattern.fullmatch(name)]
    if archive.size_bytes(names) > MAX_TEXT_BYTES:
        raise BrokenFileError(f"the text of the file has more than {MAX_TEXT_BYTES} bytes; split it")
    return archive, names


def _by_paragraph(content: bytes, pattern: re.Pattern[str], needed: str) -> FileDocument:
    archive, names = _parts(content, pattern, needed)
    roots = {name: parsed(archive.part(name)) for name in names}
    found = list(islice(chain.from_iterable(map(paragraphs, roots.values())), MAX_TEXTS + 1))
    check_copies(found)
    texts = tuple(paragraph.written() for paragraph in found)

    def rebuild(translations: Sequence[str]) -> bytes:
        for paragraph, text, translation in zip(found, texts, translations, strict=True):
            if translation != text:
                paragraph.replace(translation)
        return archive.replacing(roots)

    return FileDocument(texts, Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"}))


def _rewritten(archive: Archive, names: Sequence[str], translations: Sequence[str]) -> bytes:
    """The archive with its parts translated, each still well-formed if it was so."""
    parts = {name: text.encode() for name, text in zip(names, translations, strict=True)}
    for name, part in parts.items():
        if _is_well_formed(archive.part(name)) and not _is_well_formed(part):
            raise GenerationError(f"the translation of {name} came back with broken tags; ask again")
    return archive.replacing(parts)


def _is_well_formed(part: bytes) -> bool:
    try:
        etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return False
    return True
