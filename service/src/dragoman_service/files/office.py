"""Word, PowerPoint, OpenDocument and EPUB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

from lxml import etree

from dragoman_protocols.errors import BrokenFileError, GenerationError
from dragoman_protocols.markup_tokens import RAW_TEXT, Kind, tokens
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed, serialized
from dragoman_service.files.document import MAX_TEXTS, FileDocument
from dragoman_service.files.opendocument import RANGE, apart, together
from dragoman_service.files.packages import book_parts, check_size, left_parts, office_parts
from dragoman_service.files.paragraphs import Paragraph, PlainText, check_copies, paragraphs
from dragoman_service.files.plain import decoded
from dragoman_service.files.values import is_language

WORD, SLIDES, DIAGRAM, CHART = "wordprocessingml", "presentationml", "diagram", "chart"
NO_DOCUMENT = "the file is no document of this kind"
LAYOUTS = ("sldLayout", "sldMaster")

SHARED_KINDS = ((DIAGRAM, "dataModel"), (DIAGRAM, "drawing"), (CHART, "chartSpace"))
WORD_KINDS = tuple((WORD, each) for each in ("document", "hdr", "ftr", "footnotes", "endnotes", "comments"))
POWERPOINT_KINDS = (
    *((SLIDES, each) for each in ("sld", "notes", "cmLst", "sldLayout", "sldMaster")),
    ("powerpoint", "cmLst"),
)
OPENDOCUMENT_KINDS = tuple((":opendocument:", each) for each in ("document-content", "document-styles"))
"""Roots of parts with text: what their namespaces contain, and their names."""

# fmt: off
OPENDOCUMENT_FIELDS = frozenset({
    "text:page-number", "text:page-count", "text:date", "text:time", "text:sequence", "text:bookmark-ref",
    "text:chapter", "text:ruby-text",
})
OPENDOCUMENT_IGNORED = frozenset({
    "office:automatic-styles", "office:styles", "office:font-face-decls", "office:scripts", "office:settings",
    "text:tracked-changes", "text:sequence-decls", "text:note-citation", "dc:creator",
    "dc:date", "meta:creator-initials", "draw:object", "math:math", "ranges",
}) | OPENDOCUMENT_FIELDS
OPENDOCUMENT_BLOCKS = frozenset({"text:p", "text:h", "text:list-item", "table:table-cell", "text:note"})
OPENDOCUMENT_INLINE = frozenset({
    "text:span", "text:a", "text:s", "text:tab", "text:line-break", "text:soft-page-break", "text:bookmark",
    "text:bookmark-start", "text:bookmark-end", "text:ruby", "text:ruby-base", "x", "text:reference-mark",
    "text:reference-mark-start", "text:reference-mark-end", "text:alphabetical-index-mark",
    "text:alphabetical-index-mark-start", "text:alphabetical-index-mark-end", "text:toc-mark",
    "text:toc-mark-start", "text:toc-mark-end", "office:annotation-end", "text:change", "text:change-start",
    "text:change-end",
})
# fmt: on
"""Source: OpenDocument 1.3, part 3, sections 5 and 6."""


def read_word(content: bytes) -> FileDocument:
    """A .docx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, WORD_KINDS)


def read_powerpoint(content: bytes) -> FileDocument:
    """A .pptx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, POWERPOINT_KINDS)


def read_opendocument(content: bytes) -> FileDocument:
    """An .odt, .odp or .ods file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive = Archive(content)
    names = office_parts(archive, OPENDOCUMENT_KINDS)
    if not names:
        raise BrokenFileError(NO_DOCUMENT)
    check_size(archive, names)
    parts = [
        apart(RANGE.sub(r"<ranges>\g<0></ranges>", serialized(parsed(archive.part(name))).decode()))
        for name in names
    ]

    def rebuild(translations: Sequence[str]) -> bytes:
        left = iter(translations)
        return _rewritten(archive, names, [together(list(islice(left, len(part)))) for part in parts])

    return FileDocument(
        tuple(chain.from_iterable(parts)),
        Format.XML,
        rebuild,
        OPENDOCUMENT_IGNORED,
        OPENDOCUMENT_BLOCKS,
        OPENDOCUMENT_INLINE | OPENDOCUMENT_FIELDS,
    )


def read_book(content: bytes) -> FileDocument:
    """An .epub file without copy protection; its chapters are translated, its metadata are not.

    Raises:
        BrokenFileError: It is none, or is damaged or protected.
    """
    archive = Archive(content)
    if "META-INF/container.xml" not in archive.names:
        raise BrokenFileError(f"{NO_DOCUMENT}: it has no META-INF/container.xml")
    _, names = book_parts(archive)
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


def _by_paragraph(content: bytes, kinds: Sequence[tuple[str, str]]) -> FileDocument:
    archive = Archive(content)
    names = office_parts(archive, (*kinds, *SHARED_KINDS))
    check_size(archive, names)
    roots = {name: parsed(archive.part(name)) for name in names}
    if not any(etree.QName(root).localname in {name for _, name in kinds} for root in roots.values()):
        raise BrokenFileError(NO_DOCUMENT)
    found = list(islice(chain.from_iterable(map(texts_in, roots.values())), MAX_TEXTS + 1))
    check_copies(found)
    texts = tuple(paragraph.written() for paragraph in found)

    def rebuild(translations: Sequence[str]) -> bytes:
        for paragraph, text, translation in zip(found, texts, translations, strict=True):
            if translation != text:
                paragraph.replace(translation)
        return archive.replacing(roots)

    return FileDocument(
        texts, Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"}), left=left_parts(archive)
    )


def texts_in(root: etree._Element) -> Iterator[Paragraph | PlainText]:
    """The texts of a part, by its root.

    Of layouts and masters of slides those that slides show; of a chart also the labels that it has from its data.
    """
    name = etree.QName(root).localname
    found = paragraphs(root)
    yield from (each for each in found if not _is_prompt(each.element)) if name in LAYOUTS else found
    if name == "cmLst":
        yield from _plain(root.iter(f"{{{etree.QName(root).namespace}}}text"))
    elif name == "chartSpace":
        yield from _plain(root.iterfind(".//{*}strCache/{*}pt/{*}v"))


def _is_prompt(paragraph: etree._Element) -> bool:
    """Whether it is of a placeholder, whose text only the editor of a layout sees."""
    body = paragraph.getparent()
    shape = None if body is None else body.getparent()
    return shape is not None and shape.find("{*}nvSpPr/{*}nvPr/{*}ph") is not None


def _plain(elements: Iterable[etree._Element]) -> Iterator[PlainText]:
    return (PlainText(each) for each in elements if not len(each) and is_language(each.text or ""))


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
