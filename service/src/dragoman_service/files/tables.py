"""Tables in text, .csv and .tsv: cells that are language; the others stay."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import is_language

DELIMITERS = ",;\t|"
SAMPLED_ROWS = 20


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
    delimiter = delimiter or _delimiter(text)
    rows = _rows(text, delimiter)
    places = [
        (row, cell) for row in range(len(rows)) for cell, value in enumerate(rows[row]) if is_language(value)
    ]
    texts = tuple(rows[row][cell] for row, cell in places)
    quoted = text.startswith('"') and f'"{delimiter}"' in text.partition("\n")[0]
    line_end = "\r\n" if "\r\n" in text else "\n"

    def rebuild(translations: Sequence[str]) -> bytes:
        cells = [list(row) for row in rows]
        for (row, cell), translation in zip(places, translations, strict=True):
            cells[row][cell] = translation
        written = io.StringIO()
        csv.writer(
            written,
            delimiter=delimiter,
            lineterminator=line_end,
            quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL,
        ).writerows(cells)
        whole = written.getvalue()
        return (whole if text.endswith(("\r", "\n")) else whole.removesuffix(line_end)).encode(encoding)

    return FileDocument(texts, Format.PLAIN, rebuild)


def _rows(text: str, delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise BrokenFileError(f"the file is no table of text: {error}") from None


def _delimiter(text: str) -> str:
    """That which makes as many cells, and most, in each of the first rows."""
    sample = "\n".join(text.split("\n", SAMPLED_ROWS)[:SAMPLED_ROWS])

    def score(delimiter: str) -> tuple[bool, int]:
        try:
            found = csv.reader(io.StringIO(sample, newline=""), delimiter=delimiter)
            sizes = [len(row) for row in found if row]
        except csv.Error:
            return False, 0
        return len(set(sizes)) == 1 and sizes[0] > 1, min(sizes, default=0)

    return max(DELIMITERS, key=score)
