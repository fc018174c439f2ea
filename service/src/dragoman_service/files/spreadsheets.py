"""Excel workbooks: texts of cells, comments, drawings, and of sheets what is printed or shown beside cells.

Formulas, numbers and names of sheets stay. Names of tables' columns are translated with their header cells, which must
be equal, unless formulas, queries or pivot tables refer to them.

Source: ECMA-376-1:2016, sections 18.3 (sheets), 18.4 (shared strings), 18.5 (tables) and 18.10 (pivot tables).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.archives import Archive, parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.line_breaks import CHOICES, ESCAPES, HEADER
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
IN_SHEETS = re.compile(
    rb"inlineStr|<(?:[\w.-]+:)?(?:headerFooter|dataValidation|filter)[\s>]|\stooltip=|\st=[\"']str"
)
"""What a sheet with texts of its own has."""
TABLES, PIVOTS = (("", "table"),), (("", "pivotCacheDefinition"),)
REFERENCE = re.compile(
    rb"<(?:[\w.-]+:)?(?:f|formula[12]?|definedName|calculatedColumnFormula|totalsRowFormula)(?:\s[^<>]*)?>[^<]*\["
)
"""Of a formula, to a column of a table or to another workbook."""
MAX_COLUMN_CHARS = 255
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
    parts, left = _parts(archive)
    roots = {name: parsed(part, keep_cdata=True) for name, part in parts.items()}
    tables = _tables(archive)
    kept = _kept_columns(archive, tables.values())
    every = ((name, text) for name, root in (roots | tables).items() for text in _texts(root))
    kept |= _rich_headers(roots.values(), tables.values())
    found = ((name, text) for name, text in every if is_language(text.plain) and text.plain not in kept)
    left += office_parts(archive, PIVOTS)
    left += [
        name
        for name, table in tables.items()
        if any(each in kept and is_language(each) for each in _names(table))
    ]
    document = package_document(content, archive, roots | tables, found, target_lang, left)
    return replace(
        document, rebuild=lambda translations: document.rebuild(_distinct(document, tables, translations))
    )


def _texts(root: etree._Element) -> Iterator[Paragraph | PlainText]:
    """The texts of a part: of cells, comments, drawings."""
    name = etree.QName(root).localname
    if name == "table":
        for column in root.iter("{*}tableColumn"):
            yield from (PlainText(column, key) for key in ("name", "totalsRowLabel") if key in column.attrib)
        return
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
        yield from _results(root)
        choices = root.iterfind(".//{*}dataValidation[@type='list']/{*}formula1")
        yield from (PlainText(each, signs=CHOICES) for each in choices if CHOICE.fullmatch(each.text or ""))


def _results(sheet: etree._Element) -> Iterator[PlainText]:
    """Texts that formulas resulted in, which are shown until the next calculation; not those that a formula states."""
    for cell in sheet.iterfind(".//{*}c[@t='str']"):
        result = cell.find("{*}v")
        if result is not None and f'"{result.text}"' not in (cell.findtext("{*}f") or ""):
            yield PlainText(result)


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


def _tables(archive: Archive) -> dict[str, etree._Element]:
    names = office_parts(archive, TABLES)
    check_size(archive, names)
    return {name: parsed(archive.part(name), keep_cdata=True) for name in names}


def _names(table: etree._Element) -> list[str]:
    return [column.get("name") or "" for column in table.iter("{*}tableColumn")]


def _kept_columns(archive: Archive, tables: Collection[etree._Element]) -> set[str]:
    """Names of columns to which something refers."""
    pivots = office_parts(archive, PIVOTS)
    check_size(archive, pivots)
    fields = (field for name in pivots for field in parsed(archive.part(name)).iter("{*}cacheField"))
    kept = {field.get("name") or "" for field in fields}
    formulas = office_parts(archive, (*SHEETS, *TABLES, ("", "workbook"))) if tables else ()
    is_kept = any(REFERENCE.search(archive.part(name)) for name in formulas)
    for table in tables:
        is_data = table.get("tableType") is not None  # Of a query, or of XML.
        kept.update(name for name in _names(table) if is_kept or is_data or ESCAPES.search(name))
    return kept


def _rich_headers(roots: Iterable[etree._Element], tables: Collection[etree._Element]) -> set[str]:
    """Names of columns whose header cells have formats: the names, which must be equal to them, have none."""
    names = {name for table in tables for name in _names(table)}
    rich = (text.plain for root in roots for text in _texts(root) if isinstance(text, Paragraph))
    return names.intersection(rich) if names else set()


def _distinct(
    document: FileDocument, tables: Mapping[str, etree._Element], translations: Sequence[str]
) -> list[str]:
    """The translations, without those of tables whose columns would have equal names, or too long ones."""
    of = dict(zip(document.texts, translations, strict=True))
    kept: set[str] = set()
    for table in tables.values():
        names = [escape(name, quote=False) for name in _names(table)]
        after = [of.get(name, name).casefold() for name in names]
        if len(set(after)) < len(after) or any(len(name) > MAX_COLUMN_CHARS for name in after):
            kept.update(names)
    return [text if text in kept else new for text, new in zip(document.texts, translations, strict=True)]
