"""Tables in text, .csv and .tsv: cells that are language; all else stays byte for byte."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.messages import Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import is_language

DELIMITERS = ",;\t|"
SAMPLED_ROWS = 20
MAX_CELL_CHARS = 131_072
"""As Python's csv has it."""

SEPARATOR = re.compile(r"\ufeff?sep=(.)(?:\r\n|\r|\n)")
"""The line that names the delimiter to Excel."""

FORMULA = re.compile(r"\s*(?:=|[+@-][A-Za-z.]+\()")


@dataclass(frozen=True)
class _Cell:
    """A cell: its text, and from and up to which character its source stands."""

    text: str
    start: int
    end: int
    is_quoted: bool


def read_csv(content: bytes) -> FileDocument:
    """A table whose cells are separated by commas, semicolons, tabs or bars.

    Raises:
        BrokenFileError: It is none: a quotation mark is not closed, or a cell is too long.
    """
    return _read(content, None)


def read_tsv(content: bytes) -> FileDocument:
    """A table whose cells are separated by tabs; raises as `read_csv`."""
    return _read(content, "\t")


def _read(content: bytes, delimiter: str | None) -> FileDocument:
    encoding = marked_encoding(content) or "utf-8"
    text = decoded(content, encoding)
    stated = SEPARATOR.match(text)
    start = stated.end() if stated else 0
    delimiter = delimiter or (stated[1] if stated else _delimiter(text))
    cells = [
        cell
        for cell in _cells(text, start, delimiter)
        if is_language(cell.text) and not FORMULA.match(cell.text)
    ]

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for cell, translation in zip(cells, translations, strict=True):
            raw = text[cell.start : cell.end]
            new = raw if translation == cell.text else _written(translation, delimiter, cell)
            written += (text[position : cell.start], new)
            position = cell.end
        return "".join([*written, text[position:]]).encode(encoding)

    return message_document([Message(cell.text) for cell in cells], rebuild)


def _cells(text: str, start: int, delimiter: str) -> list[_Cell]:
    """The cells of a table; a quotation mark within one that does not begin with it is text."""
    stop = rf"{re.escape(delimiter)}\r\n" if delimiter else r"\r\n"
    quoted = re.compile(rf'"((?:[^"]|"")*+)"(?=[{stop}]|\Z)')
    bare = re.compile(rf"[^{stop}]*+")
    closed = re.compile(rf'"[^"{stop}]*+"')
    cells: list[_Cell] = []
    position = start
    while position <= len(text):
        found = quoted.match(text, position)
        if found:
            cells.append(_Cell(found[1].replace('""', '"'), position, found.end(), is_quoted=True))
        else:
            found = bare.match(text, position)
            assert found is not None
            if found[0].startswith('"') and not closed.match(text, position):
                line = text.count("\n", 0, position) + 1
                raise BrokenFileError(f"the file is no table of text: no end of the quotation in line {line}")
            cells.append(_Cell(found[0], position, found.end(), is_quoted=False))
        if found.end() - position > MAX_CELL_CHARS:
            raise BrokenFileError(
                f"the file is no table of text: a cell has over {MAX_CELL_CHARS} characters"
            )
        position = found.end() + 1
    return cells


def _written(translation: str, delimiter: str, cell: _Cell) -> str:
    is_new = translation[:1] == '"' and cell.text[:1] != '"'
    needed = is_new or (delimiter and delimiter in translation) or re.search(r"[\r\n]", translation)
    if cell.is_quoted or needed:
        return '"' + translation.replace('"', '""') + '"'
    return translation


def _delimiter(text: str) -> str:
    """That which makes as many cells, and most, in each of the first rows; none where rows are only prose."""
    sample = "\n".join(text.split("\n", SAMPLED_ROWS)[:SAMPLED_ROWS])

    def score(delimiter: str) -> tuple[bool, int]:
        try:
            found = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
            sizes = [len(row) for row in found if row]
        except csv.Error:
            return False, 0
        return len(set(sizes)) == 1 and sizes[0] > 1, min(sizes, default=0)

    best = max(DELIMITERS, key=score)
    rows = [row for row in sample.splitlines() if row.strip()]
    is_prose = best == "," and '"' not in sample and all(PROSE.fullmatch(row.strip()) for row in rows)
    return "" if is_prose and rows else best


PROSE = re.compile(r"(?:[^,]*[^\W\d_][^,]*, )+[^,]*[^\W\d_][^,]*")
"""A row in which a blank follows each comma, and every part has letters."""
