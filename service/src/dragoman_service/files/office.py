"""Word and PowerPoint, and what workbooks share with them: diagrams, charts, descriptions, properties."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed, serialized
from dragoman_service.files.document import MAX_TEXTS, FileDocument
from dragoman_service.files.line_breaks import SPLITTING_TAGS
from dragoman_service.files.packages import check_size, left_parts, office_parts
from dragoman_service.files.paragraphs import Paragraph, PlainText, check_copies, paragraphs
from dragoman_service.files.values import is_language

WORD, SLIDES, DIAGRAM, CHART = "wordprocessingml", "presentationml", "diagram", "chart"
NO_DOCUMENT = "the file is no document of this kind"
LAYOUTS = ("sldLayout", "sldMaster")
PROPERTIES = ("core-properties", "coreProperties")

SHARED_KINDS = ((DIAGRAM, "dataModel"), (DIAGRAM, "drawing"), (CHART, "chartSpace"), PROPERTIES)
WORD_KINDS = tuple((WORD, each) for each in ("document", "hdr", "ftr", "footnotes", "endnotes", "comments"))
POWERPOINT_KINDS = (
    *((SLIDES, each) for each in ("sld", "notes", "cmLst", "sldLayout", "sldMaster")),
    ("powerpoint", "cmLst"),
)
"""Roots of parts with text: what their namespaces contain, and their names."""

SHAPES = ("shape", "rect", "roundrect", "oval", "line", "group")
ATTRIBUTES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("docPr", "cNvPr"), ("descr", "title")),
    **dict.fromkeys(("hyperlink", "hlinkClick", "hlinkHover"), ("tooltip",)),
    **dict.fromkeys(("tblCaption", "tblDescription", "helpText", "statusText", "listEntry"), ("val",)),
    **dict.fromkeys(SHAPES, ("alt",)),
    "listItem": ("displayText",),
    "textpath": ("string",),
    "dataValidation": ("promptTitle", "prompt", "errorTitle", "error"),
    "filter": ("val",),
}
"""Attributes that are shown, by the names of their elements: descriptions of pictures, tables and links, items of
lists, WordArt of VML, hints for cells, and which cells a filter shows."""

CHART_TEXTS = (
    *(f".//{{*}}{each}/{{*}}pt/{{*}}v" for each in ("strCache", "strLit")),
    *(".//{*}tx/{*}v", ".//{*}txData/{*}v", ".//{*}strDim/{*}lvl/{*}pt"),
)
"""Labels, of new kinds of charts (`cx:`) too."""


def read_word(content: bytes, target_lang: str) -> FileDocument:
    """A .docx file.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for the language and the direction of what is translated.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, WORD_KINDS, target_lang)


def read_powerpoint(content: bytes, target_lang: str) -> FileDocument:
    """A .pptx file; see `read_word`.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    return _by_paragraph(content, POWERPOINT_KINDS, target_lang)


def _by_paragraph(content: bytes, kinds: Sequence[tuple[str, str]], lang: str) -> FileDocument:
    archive = Archive(content)
    names = office_parts(archive, (*kinds, *SHARED_KINDS))
    check_size(archive, names)
    roots = {name: parsed(archive.part(name), keep_cdata=True) for name in names}
    if not any(etree.QName(root).localname in {name for _, name in kinds} for root in roots.values()):
        raise BrokenFileError(NO_DOCUMENT)
    found = ((name, text) for name, root in roots.items() for text in texts_in(root))
    return package_document(content, archive, roots, found, lang)


def package_document(
    content: bytes,
    archive: Archive,
    roots: Mapping[str, etree._Element],
    found: Iterable[tuple[str, Paragraph | PlainText]],
    lang: str,
    left: Iterable[str] = (),
) -> FileDocument:
    """A document of texts in XML parts. Parts without a translation stay byte for byte.

    Args:
        content: The file.
        archive: The same, opened.
        roots: Of the parts, by their names.
        found: The texts, each with the name of its part.
        lang: BCP-47 tag of the translation.
        left: Parts that are not translated, besides documents within the document.

    Raises:
        BrokenFileError: The texts need too much memory.
    """
    texts = list(islice(found, MAX_TEXTS + 1))
    check_copies(text for _, text in texts)
    before = tuple(text.written() for _, text in texts)

    def rebuild(translations: Sequence[str]) -> bytes:
        changed: dict[str, etree._Element] = {}
        for (name, text), source, translation in zip(texts, before, translations, strict=True):
            if translation != source and text.replace(translation, lang):
                changed[name] = roots[name]
        parts = {name: serialized(root, archive.part(name)) for name, root in changed.items()}
        return archive.replacing(parts) if parts else content

    return FileDocument(
        before,
        Format.XML,
        rebuild,
        splitting_tags=SPLITTING_TAGS,
        non_splitting_tags=frozenset({"g", "x"}),
        left=(*left_parts(archive), *left),
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
        for path in CHART_TEXTS:
            yield from _plain(root.iterfind(path))
    elif name == PROPERTIES[1]:
        yield from _plain(root.iterfind("{*}title"))
    yield from attributes_in(root)


def attributes_in(root: etree._Element) -> Iterator[PlainText]:
    """The attributes of a part that are read."""
    for element in root.iter(*(f"{{*}}{name}" for name in ATTRIBUTES)):
        for key, value in element.attrib.items():
            name = etree.QName(key).localname
            if name in ATTRIBUTES[etree.QName(element).localname] and is_language(value):
                yield PlainText(element, key)


def _is_prompt(paragraph: etree._Element) -> bool:
    """Whether it is of a placeholder, whose text only the editor of a layout sees."""
    body = paragraph.getparent()
    shape = None if body is None else body.getparent()
    return shape is not None and shape.find("{*}nvSpPr/{*}nvPr/{*}ph") is not None


def _plain(elements: Iterable[etree._Element]) -> Iterator[PlainText]:
    return (PlainText(each) for each in elements if not len(each) and is_language(each.text or ""))
