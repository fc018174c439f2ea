"""Which files can be translated, by the ends of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from types import MappingProxyType

from dragoman_protocols.errors import UnsupportedFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.office import read_book, read_opendocument, read_powerpoint, read_word
from dragoman_service.files.plain import read_html, read_text
from dragoman_service.files.subtitles import read_subtitles

Reader = Callable[[bytes], FileDocument]

READERS: MappingProxyType[str, Reader] = MappingProxyType(
    {
        ".txt": read_text,
        ".html": read_html,
        ".htm": read_html,
        ".srt": read_subtitles,
        ".docx": read_word,
        ".pptx": read_powerpoint,
        ".odt": read_opendocument,
        ".odp": read_opendocument,
        ".epub": read_book,
    }
)


def reader_for(name: str) -> Reader:
    """The reader for a file, by the end of its name.

    Raises:
        UnsupportedFileError: With the kinds that are known.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in READERS:
        raise UnsupportedFileError(
            f"files of the kind {ending[:20]!r} are not translated; send one of {', '.join(READERS)}"
        )
    return READERS[ending]
