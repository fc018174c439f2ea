"""Excel workbooks: texts of cells. Formulas, numbers, names of sheets and of columns in tables stay.

A formula refers to a table's columns by their names, and Excel repairs a file in which header cells have others.

Source: ECMA-376-1:2016, sections 18.4 (shared strings) and 18.5 (tables).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import islice

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed
from dragoman_service.files.document import MAX_TEXTS, FileDocument
from dragoman_service.files.office import MAX_TEXT_BYTES
from dragoman_service.files.paragraphs import SPACE, Paragraph, check_copies, paragraph_of
from dragoman_service.files.values import in_xml, is_language

SHARED = "xl/sharedStrings.xml"
SHEETS = re.compile(r"xl/worksheets/sheet\d+\.xml")
TABLES = re.compile(r"xl/tables/table\d+\.xml")


def read_excel(content: bytes) -> FileDocument:
    """An .xlsx file.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive = Archive(content)
    if "xl/workbook.xml" not in archive.names:
        raise BrokenFileError("the file is no document of this kind: it has no xl/workbook.xml")
    columns = _columns(archive)
    roots = {name: parsed(part) for name, part in _parts(archive).items()}
    cells = list(islice(_cells(roots.values(), columns), MAX_TEXTS + 1))
    check_copies(cell.rich for cell in cells if cell.rich)
    texts = tuple(cell.text for cell in cells)

    def rebuild(translations: Sequence[str]) -> bytes:
        for cell, translation in zip(cells, translations, strict=True):
            if translation != cell.text:
                cell.replace(translation)
        return archive.replacing(roots)

    return FileDocument(texts, Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"}))


def _cells(roots: Iterable[etree._Element], columns: frozenset[str]) -> Iterator[_Cell]:
    """The cells with text that is translated."""
    for root in roots:
        for element in root.iter("{*}si" if etree.QName(root).localname == "sst" else "{*}is"):
            if len(element):
                cell = _Cell(element)
                if is_language(cell.words) and cell.words not in columns:
                    yield cell


def _parts(archive: Archive) -> dict[str, bytes]:
    """The shared strings, and the sheets that have texts of their own."""
    parts: dict[str, bytes] = {}
    size = 0
    for name in archive.names:
        if name == SHARED or SHEETS.fullmatch(name):
            part = archive.part(name)
            if name == SHARED or b"inlineStr" in part:
                parts[name] = part
                size += len(part)
        if size > MAX_TEXT_BYTES:
            raise BrokenFileError(f"the text of the file has more than {MAX_TEXT_BYTES} bytes; split it")
    return parts


def _columns(archive: Archive) -> frozenset[str]:
    """Names of tables' columns."""
    names = [name for name in archive.names if TABLES.fullmatch(name)]
    if archive.size_bytes(names) > MAX_TEXT_BYTES:
        raise BrokenFileError(f"the tables of the file have more than {MAX_TEXT_BYTES} bytes; split it")
    found = (
        column.get("name") or ""
        for name in names
        for column in parsed(archive.part(name)).iter("{*}tableColumn")
    )
    return frozenset(found)


class _Cell:
    """A text: plain, or of runs with formats, as a paragraph."""

    def __init__(self, element: etree._Element) -> None:
        self._plain = element.find("{*}t")
        self.rich: Paragraph | None = None
        if self._plain is None and element.find("{*}r") is not None:
            self.rich = paragraph_of(element)
        self.words = (
            (self._plain.text or "") if self._plain is not None else self.rich.plain if self.rich else ""
        )
        self.text = (
            self.rich.written() if self.rich and self.words.strip() else escape(self.words, quote=False)
        )

    def replace(self, translation: str) -> None:
        """Replace the text; one whose tags were lost stays."""
        if self.rich:
            self.rich.replace(translation)
        elif self._plain is not None:
            try:
                tree = etree.fromstring(f"<p>{translation}</p>", etree.XMLParser(resolve_entities=False))
            except (etree.XMLSyntaxError, ValueError):
                return
            self._plain.text = in_xml("".join(tree.itertext()))
            self._plain.set(SPACE, "preserve")
