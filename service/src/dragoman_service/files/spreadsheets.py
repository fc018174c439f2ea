"""Excel workbooks: texts of cells, comments, drawings, and of sheets what is printed or shown beside cells.

Formulas, numbers, names of sheets, and of columns in tables and pivot tables stay. A formula refers to a table's
columns by their names, Excel repairs a file in which header cells have others, and a pivot table that is refreshed
loses fields whose column has another name.

Source: ECMA-376-1:2016, sections 18.3 (sheets), 18.4 (shared strings), 18.5 (tables) and 18.10 (pivot tables).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.archives import Archive, parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.line_breaks import CHOICES, HEADER
from dragoman_service.files.office import (
    NO_DOCUMENT,
    SHARED_KINDS,
    attributes_in,
    package_document,
    texts_in,
)
from dragoman_service.files.packages import MAX_TEXT_BYTES, check_size, office_parts
from dragoman_service.files.paragraphs import Paragraph, PlainText, paragraph_of
from dragoman_service.files.values import is_language

SHEETS = (("", "worksheet"), ("", "chartsheet"))
TEXTS = (
    ("", "sst"),
    ("", "comments"),
    ("", "ThreadedComments"),
    ("spreadsheetDrawing", "wsDr"),
    *SHARED_KINDS,
)
RICH = {"sst": "si", "worksheet": "is", "comments": "text", "ThreadedComments": "text"}
"""Elements with text, by the roots of their parts."""
IN_SHEETS = re.compile(rb"inlineStr|<(?:[\w.-]+:)?(?:headerFooter|dataValidation|filter)[\s>]|\stooltip=")
"""What a sheet with texts of its own has."""
PIVOTS = (("", "pivotCacheDefinition"),)
COLUMNS = {"table": "tableColumn", "pivotCacheDefinition": "cacheField"}
"""Elements that name columns, by the roots of their parts."""
CHOICE = re.compile(r'"[^"]+"')
"""The values that a cell may have, in place of a formula."""


def read_excel(content: bytes, target_lang: str) -> FileDocument:
    """An .xlsx file.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for the language of text in shapes and charts; cells name none.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive = Archive(content)
    if not office_parts(archive, (("", "workbook"), ("", "sst"), *SHEETS)):
        raise BrokenFileError(NO_DOCUMENT)
    columns = _columns(archive)
    parts, left = _parts(archive)
    roots = {name: parsed(part, keep_cdata=True) for name, part in parts.items()}
    every = ((name, text) for name, root in roots.items() for text in _texts(root))
    found = ((name, text) for name, text in every if is_language(text.plain) and text.plain not in columns)
    left += office_parts(archive, PIVOTS)
    return package_document(content, archive, roots, found, target_lang, left)


def _texts(root: etree._Element) -> Iterator[Paragraph | PlainText]:
    """The texts of a part: of cells, comments, drawings."""
    name = etree.QName(root).localname
    if name not in (*RICH, "chartsheet"):
        yield from texts_in(root)
        return
    for element in root.iter(f"{{*}}{RICH[name]}") if name in RICH else ():
        if name == "ThreadedComments":
            yield PlainText(element)
        elif len(element):
            plain = element.find("{*}t")
            if plain is not None:
                yield PlainText(plain)
            elif element.find("{*}r") is not None:
                yield paragraph_of(element)
    if name.endswith("sheet"):
        yield from attributes_in(root)
        yield from (PlainText(each, signs=HEADER) for each in root.iterfind("{*}headerFooter/*"))
        choices = root.iterfind(".//{*}dataValidation[@type='list']/{*}formula1")
        yield from (PlainText(each, signs=CHOICES) for each in choices if CHOICE.fullmatch(each.text or ""))


def _parts(archive: Archive) -> tuple[dict[str, bytes], list[str]]:
    """The parts with texts, and sheets that are too long to read what is printed or shown beside their cells."""
    parts = {name: archive.part(name) for name in office_parts(archive, TEXTS)}
    size = sum(map(len, parts.values()))
    left: list[str] = []
    for name in office_parts(archive, SHEETS):
        part = archive.part(name)
        if not IN_SHEETS.search(part):
            continue
        if size + len(part) > MAX_TEXT_BYTES and b"inlineStr" not in part:
            left.append(name)
            continue
        parts[name] = part
        size += len(part)
    if size > MAX_TEXT_BYTES:
        raise BrokenFileError(f"the text of the file has more than {MAX_TEXT_BYTES} bytes; split it")
    return parts, left


def _columns(archive: Archive) -> frozenset[str]:
    """Names of the columns of tables and pivot tables."""
    names = office_parts(archive, [("", kind) for kind in COLUMNS])
    check_size(archive, names)
    roots = [parsed(archive.part(name)) for name in names]
    return frozenset(
        column.get("name") or ""
        for root in roots
        for column in root.iter(f"{{*}}{COLUMNS[etree.QName(root).localname]}")
    )
