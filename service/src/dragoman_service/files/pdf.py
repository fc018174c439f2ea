"""PDF: its text is read in a process of its own, and its translation is a new Word document.

A PDF has no paragraphs that could grow with a translation, and seldom the letters of another language in its fonts.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.pdf_layout import Block
from dragoman_service.files.pdf_process import (
    CPU_S,
    DAMAGED,
    ENCRYPTED,
    MAX_CHARACTERS,
    MAX_PAGES,
    MEMORY_BYTES,
    NO_TEXT,
    TOO_LONG,
)
from dragoman_service.files.word_writer import WordParagraph, word_document

PROGRAM = "dragoman_service.files.pdf_process"

MAX_S = 2.0 * CPU_S
"""Of the process, on a busy machine."""

MESSAGES = {
    ENCRYPTED: "the PDF is encrypted; save it without a password",
    DAMAGED: "the file is no PDF, or is damaged: it cannot be opened",
    NO_TEXT: "the PDF has no text; it is a scan, or its letters are drawings: run OCR first",
    TOO_LONG: f"the PDF has more than {MAX_PAGES} pages or {MAX_CHARACTERS} characters; split it",
}
TOO_MUCH = (
    f"the PDF cannot be read within {CPU_S} s and {MEMORY_BYTES >> 20} MiB of memory; split it, or print it "
    "into a new PDF"
)


def read_pdf(content: bytes, target_lang: str) -> FileDocument:
    """A .pdf file; `rebuild` makes a .docx file.

    Blocks for as long as the process runs: call it in a thread for which no other work waits.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for the language and the direction of the new document.

    Raises:
        BrokenFileError: It is none, is damaged, encrypted or a scan, or takes too much to read.
    """
    blocks = _extracted(content)
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


def _extracted(content: bytes) -> list[Block]:
    try:
        process = subprocess.run(
            [sys.executable, "-m", PROGRAM],
            input=content,
            capture_output=True,
            timeout=MAX_S,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise BrokenFileError(TOO_MUCH) from None
    if process.returncode:
        # A limit ended it: by a signal, by an error of memory, or by PDFium, which ends the process where it has none.
        raise BrokenFileError(TOO_MUCH)
    answer = json.loads(process.stdout)
    if "refused" in answer:
        raise BrokenFileError(MESSAGES[answer["refused"]])
    return [Block(*block) for block in answer["blocks"]]
