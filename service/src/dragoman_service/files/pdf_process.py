"""The process that reads one PDF: from standard input to JSON on standard output.

PDFium is native code for a format in which a small file can take any time and memory, so it runs apart: with limits
that the kernel holds, with no environment, and at a lower priority.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dragoman_service.files.pdf_layout import Line, blocks

MAX_PAGES = 2000
MAX_CHARACTERS = 8 * 1024 * 1024
CPU_S = 30
MEMORY_BYTES = 512 * 1024 * 1024
"""Of the process's address space, of which Python and PDFium take a quarter."""
NICENESS = 10

ENCRYPTED = "encrypted"
DAMAGED = "damaged"
NO_TEXT = "no text"
TOO_LONG = "too long"
"""What is wrong with a file, as the process reports it."""

LINE_FEED = 10
HYPHENS = frozenset({0x02, 0xFFFE})
"""How PDFium writes a hyphen that it found to be one of a line break."""
MIN_GAP = 1.0
"""Between two cells of a table, in heights of the line."""
MAX_LABEL_CHARS = 6
BOLD = ("bold", "black", "heavy", "demi")


class RefusedError(Exception):
    """A file that is not read; the argument is one of the reasons above."""


def limit() -> None:
    """Bound what this process may use."""
    os.nice(NICENESS)
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def pages(content: bytes) -> Iterator[list[Line]]:
    """The lines of each page.

    Raises:
        RefusedError: It cannot be read, or is too long.
    """
    import pypdfium2
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        is_encrypted = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD
        raise RefusedError(ENCRYPTED if is_encrypted else DAMAGED) from None
    if len(document) > MAX_PAGES:
        raise RefusedError(TOO_LONG)
    characters = 0
    for index in range(len(document)):
        try:
            page = document[index]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:
            continue  # A page that is broken is blank in viewers, too.
        characters += text.count_chars()
        if characters > MAX_CHARACTERS:
            raise RefusedError(TOO_LONG)
        yield list(_lines(raw, text))
        text.close()
        page.close()


def _lines(raw: Any, page: Any) -> Iterator[Line]:
    """The lines of a page in the order in which it draws them."""
    glyphs: list[_Glyph] = []
    for index in range(page.count_chars()):
        code = raw.FPDFText_GetUnicode(page, index)
        if code == LINE_FEED or code in HYPHENS:
            if code in HYPHENS and glyphs:
                glyphs.append(_Glyph(glyphs[-1].at, "\u2010"))
            yield from _cells(raw, page, glyphs)
            glyphs = []
        elif code > ord(" ") and code != 0xFFFF and not 0xD800 <= code < 0xE000 and not 0x7F <= code < 0xA0:
            glyphs.append(_Glyph(index, chr(code)))
        elif glyphs and glyphs[-1].at >= 0:
            glyphs.append(SPACE)
    yield from _cells(raw, page, glyphs)


class _Glyph(NamedTuple):
    """A character of a page's text, and its number in it; -1 for a space."""

    at: int
    text: str


SPACE = _Glyph(-1, " ")


def _cells(raw: Any, page: Any, glyphs: Sequence[_Glyph]) -> Iterator[Line]:
    """A line, or the parts of one that wide gaps divide."""
    cells: list[list[_Glyph]] = [[]]
    right = 0.0
    for place, glyph in enumerate(glyphs):
        if glyph is SPACE:
            right = _box(raw, page, glyphs[place - 1].at).right
        elif place and glyphs[place - 1] is SPACE and not _is_label(cells[-1]):
            box = _box(raw, page, glyph.at)
            if box.left - right > MIN_GAP * (box.top - box.bottom):
                cells.append([])
        cells[-1].append(glyph)
    for cell in cells:
        text = "".join(glyph.text for glyph in cell).strip()
        places = [glyph.at for glyph in cell if glyph is not SPACE]
        if places:
            first, middle, last = (_box(raw, page, places[at]) for at in (0, len(places) // 2, -1))
            yield Line(
                text,
                min(first.left, last.left),
                max(first.right, last.right),
                min(first.bottom, last.bottom),
                middle.top - middle.bottom,
                _is_bold(raw, page, places[len(places) // 2]),
                len(cells) > 1,
            )


def _is_label(cell: Sequence[_Glyph]) -> bool:
    """Whether it is the bullet or the number of an item or a heading, which has its text behind a gap."""
    # Two more than a label has: one shows that it is longer, one may be a space.
    text = "".join(glyph.text for glyph in cell[: MAX_LABEL_CHARS + 2]).strip()
    return len(text) <= MAX_LABEL_CHARS and not (len(text) > 2 and text.isalpha())


def _box(raw: Any, page: Any, index: int) -> Any:
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(page, index, box)
    return box


def _is_bold(raw: Any, page: Any, index: int) -> bool:
    name = ctypes.create_string_buffer(200)
    size = raw.FPDFText_GetFontInfo(page, index, name, 200, None)
    return 0 < size <= 200 and any(word in name.value.decode("utf-8", "replace").lower() for word in BOLD)


def answer(content: bytes) -> dict[str, Any]:
    """What the process writes: `{"blocks": […]}`, or `{"refused": reason}`."""
    try:
        found = blocks(pages(content))
    except RefusedError as error:
        return {"refused": str(error)}
    return {"blocks": found} if found else {"refused": NO_TEXT}


def main() -> None:
    """Read one PDF."""
    content = sys.stdin.buffer.read()
    limit()
    json.dump(answer(content), sys.stdout)


if __name__ == "__main__":
    main()
