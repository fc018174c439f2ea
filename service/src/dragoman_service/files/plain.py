"""Text files: one text each, written back in the encoding in which it came."""

from __future__ import annotations

import codecs
import re

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""UTF-32 before UTF-16, whose mark is the beginning of its own."""

ENCODINGS = re.compile(
    r"utf-8|ascii|iso8859-\d+|cp\d+|koi8-[rtu]|gb\w+|big5\w*|euc_\w+|shift_jis\w*|iso2022_\w+|tis-620|mac-\w+"
)
"""Those of Python's codecs that HTML files are written in."""


def read_text(content: bytes) -> FileDocument:
    """A text file: UTF-8, or UTF-16 or UTF-32 with a byte order mark.

    Raises:
        BrokenFileError: It is neither.
    """
    encoding = marked_encoding(content) or "utf-8"
    text = decoded(content, encoding)
    return FileDocument((text,), Format.PLAIN, lambda texts: texts[0].encode(encoding))


def decoded(content: bytes, encoding: str) -> str:
    """A file's text.

    Raises:
        BrokenFileError: It is not in this encoding.
    """
    try:
        return content.decode(encoding)
    except UnicodeError:
        raise BrokenFileError(f"the file is not {encoding}; save it as UTF-8") from None


def marked_encoding(content: bytes) -> str | None:
    """The encoding that a byte order mark names."""
    return next((encoding for mark, encoding in BYTE_ORDER_MARKS if content.startswith(mark)), None)


def known_encoding(named: str) -> str:
    """The codec of an encoding that a file names.

    Raises:
        BrokenFileError: It is not known.
    """
    try:
        name = codecs.lookup(named).name
    except LookupError:
        name = ""
    if not ENCODINGS.fullmatch(name):
        raise BrokenFileError(
            f"the file names an encoding that is not known here, {named!r}; save it as UTF-8"
        )
    return name
