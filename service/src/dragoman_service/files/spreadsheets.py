"""Excel workbooks: texts of cells. Formulas, numbers, names of sheets and of columns in tables stay.

A formula refers to a table's columns by their names, and Excel repairs a file in which header cells have others.

Source: ECMA-376-1:2016, sections 18.4 (shared strings) and 18.5 (tables).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed
from dragoman_service.files.document import MAX_TEXTS, FileDocument
from dragoman_service.files.line_breaks import SPLITTING_TAGS
from dragoman_service.files.office import NO_DOCUMENT, SHARED_KINDS, texts_in
from dragoman_service.files.packages import MAX_TEXT_BYTES, check_size, left_parts, office_parts
from dragoman_service.files.paragraphs import Paragraph, PlainText, check_copies, paragraph_of
from dragoman_service.files.values import is_language

SHEETS = (("", "worksheet"),)
TEXTS = (
    ("", "sst"),
    ("", "comments"),
    ("", "ThreadedComments"),
    ("spreadsheetDrawing", "wsDr"),
    *SHARED_KINDS,
)
RICH = {"sst": "si", "worksheet": "is", "comments": "text", "ThreadedComments": "text"}
"""Elements with text, by the roots of their parts."""
TABLES = (("", "table"),)


def read_excel(content: bytes) -> FileDocument:
    """An .xlsx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive = Archive(content)
    if not office_parts(archive, (("", "workbook"), ("", "sst"), *SHEETS)):
        raise BrokenFileError(NO_DOCUMENT)
    columns = _columns(archive)
    roots = {name: parsed(part) for name, part in _parts(archive).items()}
    every = chain.from_iterable(map(_texts, roots.values()))
    found = list(islice((t for t in every if is_language(t.plain) and t.plain not in columns), MAX_TEXTS + 1))
    check_copies(found)
    texts = tuple(each.written() for each in found)

    def rebuild(translations: Sequence[str]) -> bytes:
        for each, text, translation in zip(found, texts, translations, strict=True):
            if translation != text:
                each.replace(translation)
        return archive.replacing(roots)

    return FileDocument(
        texts,
        Format.XML,
        rebuild,
        splitting_tags=SPLITTING_TAGS,
        non_splitting_tags=frozenset({"g", "x"}),
        left=left_parts(archive),
    )


def _texts(root: etree._Element) -> Iterator[Paragraph | PlainText]:
    """The texts of a part: of cells, comments, drawings."""
    name = etree.QName(root).localname
    if name not in RICH:
        yield from texts_in(root)
        return
    for element in root.iter(f"{{*}}{RICH[name]}"):
        if name == "ThreadedComments":
            yield PlainText(element)
        elif len(element):
            plain = element.find("{*}t")
            if plain is not None:
                yield PlainText(plain)
            elif element.find("{*}r") is not None:
                yield paragraph_of(element)


def _parts(archive: Archive) -> dict[str, bytes]:
    """The parts with texts, the sheets that have texts of their own among them."""
    parts: dict[str, bytes] = {}
    size = 0
    sheets = frozenset(office_parts(archive, SHEETS))
    for name in office_parts(archive, (*SHEETS, *TEXTS)):
        part = archive.part(name)
        if name not in sheets or b"inlineStr" in part:
            parts[name] = part
            size += len(part)
        if size > MAX_TEXT_BYTES:
            raise BrokenFileError(f"the text of the file has more than {MAX_TEXT_BYTES} bytes; split it")
    return parts


def _columns(archive: Archive) -> frozenset[str]:
    """Names of tables' columns."""
    names = office_parts(archive, TABLES)
    check_size(archive, names)
    found = (
        column.get("name") or ""
        for name in names
        for column in parsed(archive.part(name)).iter("{*}tableColumn")
    )
    return frozenset(found)
