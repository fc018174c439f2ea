"""PDF: its text is read with PDFium, and its translation is a new Word document.

A PDF has no paragraphs that could grow with a translation, and seldom the letters of another language in its fonts.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.pdf_layout import Line
from dragoman_service.files.pdf_layout import blocks as blocks_of
from dragoman_service.files.word_writer import WordParagraph, word_document

MAX_PAGES = 2000
MAX_CHARACTERS = 8 * 1024 * 1024

LINE_FEED, SPACE_CODE = 10, 32
HYPHENS = frozenset({0x02, 0xFFFE})
"""How PDFium writes a hyphen that it found to be one of a line break."""
MIN_GAP = 1.0
"""Between two cells of a table, in heights of the line."""
MIN_BARE_GAP = 0.5
"""The same, where the file writes no space in it, though it writes spaces between words."""
MAX_LABEL_CHARS = 6
BOLD = ("bold", "black", "heavy", "demi")

ENCRYPTED = "the PDF is encrypted; save it without a password"
DAMAGED = "the file is no PDF, or is damaged: it cannot be opened"
NO_TEXT = "the PDF has no text; it is a scan, or its letters are drawings: run OCR first"
TOO_LONG = f"the PDF has more than {MAX_PAGES} pages or {MAX_CHARACTERS} characters; split it"


def read_pdf(content: bytes, target_lang: str) -> FileDocument:
    """A .pdf file; `rebuild` makes a .docx file.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for the language and the direction of the new document.

    Raises:
        BrokenFileError: It is none, is damaged, encrypted or a scan.
    """
    blocks = blocks_of(pages(content))
    if not blocks:
        raise BrokenFileError(NO_TEXT)
    places = [number for number, block in enumerate(blocks) if any(map(str.isalpha, block.text))]

    def rebuild(translations: Sequence[str]) -> bytes:
        texts = [block.text for block in blocks]
        for place, translation in zip(places, translations, strict=True):
            texts[place] = translation
        return word_document(
            (WordParagraph(text, *block[1:]) for text, block in zip(texts, blocks, strict=True)),
            target_lang,
            right_to_left=is_right_to_left(target_lang),
        )

    return FileDocument(tuple(blocks[place].text for place in places), Format.PLAIN, rebuild)


def pages(content: bytes) -> Iterator[list[Line]]:
    """The lines of each page.

    Raises:
        BrokenFileError: It cannot be read, or is too long.
    """
    import pypdfium2
    from pypdfium2 import raw

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        is_encrypted = getattr(error, "err_code", None) == raw.FPDF_ERR_PASSWORD
        raise BrokenFileError(ENCRYPTED if is_encrypted else DAMAGED) from None
    if len(document) > MAX_PAGES:
        raise BrokenFileError(TOO_LONG)
    characters = 0
    for index in range(len(document)):
        try:
            page = document[index]
            text = page.get_textpage()
        except pypdfium2.PdfiumError:
            continue  # A page that is broken is blank in viewers, too.
        characters += text.count_chars()
        if characters > MAX_CHARACTERS:
            raise BrokenFileError(TOO_LONG)
        yield list(_lines(raw, text))
        text.close()
        page.close()


def _lines(raw: Any, page: Any) -> Iterator[Line]:
    """The lines of a page in the order in which it draws them."""
    codes = [raw.FPDFText_GetUnicode(page, index) for index in range(page.count_chars())]
    bare = {
        index
        for index, code in enumerate(codes)
        if code == SPACE_CODE and raw.FPDFText_IsGenerated(page, index)
    }
    if 2 * len(bare) > codes.count(SPACE_CODE):
        bare = set()  # Typesetters such as TeX move on instead of writing spaces.
    glyphs: list[_Glyph] = []
    for index, code in enumerate(codes):
        if code == LINE_FEED or code in HYPHENS:
            if code in HYPHENS and glyphs:
                glyphs.append(_Glyph(glyphs[-1].at, "\u2010"))
            yield from _cells(raw, page, glyphs)
            glyphs = []
        elif code > SPACE_CODE and code != 0xFFFF and not 0xD800 <= code < 0xE000 and not 0x7F <= code < 0xA0:
            glyphs.append(_Glyph(index, chr(code)))
        elif glyphs and glyphs[-1].at >= 0:
            glyphs.append(GAP if index in bare else SPACE)
    yield from _cells(raw, page, glyphs)


class _Glyph(NamedTuple):
    """A character of a page's text, and its number in it; -1 for a space."""

    at: int
    text: str


SPACE, GAP = _Glyph(-1, " "), _Glyph(-2, " ")
"""A space that the file writes, and one that PDFium found between two words."""


def _cells(raw: Any, page: Any, glyphs: Sequence[_Glyph]) -> Iterator[Line]:
    """A line, or the parts of one that wide gaps divide."""
    cells: list[list[_Glyph]] = [[]]
    right = 0.0
    for place, glyph in enumerate(glyphs):
        if glyph.at < 0:
            right = _box(raw, page, glyphs[place - 1].at).right
        elif place and glyphs[place - 1].at < 0 and not _is_label(cells[-1]):
            box = _box(raw, page, glyph.at)
            min_gap = MIN_BARE_GAP if glyphs[place - 1] is GAP else MIN_GAP
            if box.left - right > min_gap * (box.top - box.bottom):
                cells.append([])
        cells[-1].append(glyph)
    for cell in cells:
        text = "".join(glyph.text for glyph in cell).strip()
        places = [glyph.at for glyph in cell if glyph.at >= 0]
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
