"""Which files can be translated, by the ends of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from types import MappingProxyType

from dragoman_protocols.errors import BrokenFileError, UnsupportedFileError
from dragoman_service.files.catalogs import read_catalog
from dragoman_service.files.document import FileDocument
from dragoman_service.files.json_text import read_arb, read_json
from dragoman_service.files.markdown import read_markdown
from dragoman_service.files.office import read_book, read_opendocument, read_powerpoint, read_word
from dragoman_service.files.pdf import read_pdf
from dragoman_service.files.plain import read_html, read_text
from dragoman_service.files.spreadsheets import read_excel
from dragoman_service.files.strings_text import read_strings
from dragoman_service.files.subtitles import read_subtitles, read_vtt
from dragoman_service.files.tables import read_csv, read_tsv
from dragoman_service.files.xliff import read_xliff
from dragoman_service.files.xml_text import read_resx, read_xml
from dragoman_service.files.yaml_text import read_yaml_file

MAX_TEXTS = 50_000
"""Of one file: cells, messages, paragraphs."""

Reader = Callable[[bytes], FileDocument]
ReaderFor = Callable[[bytes, str], FileDocument]
"""From a file and the tag of the target language, which some kinds of files name."""


def _any_language(read: Reader) -> ReaderFor:
    return lambda content, _: read(content)


READERS: MappingProxyType[str, ReaderFor] = MappingProxyType(
    {
        ".txt": _any_language(read_text),
        ".md": _any_language(read_markdown),
        ".html": _any_language(read_html),
        ".htm": _any_language(read_html),
        ".srt": _any_language(read_subtitles),
        ".vtt": _any_language(read_vtt),
        ".docx": _any_language(read_word),
        ".pptx": _any_language(read_powerpoint),
        ".xlsx": _any_language(read_excel),
        ".odt": _any_language(read_opendocument),
        ".odp": _any_language(read_opendocument),
        ".ods": _any_language(read_opendocument),
        ".epub": _any_language(read_book),
        ".csv": _any_language(read_csv),
        ".tsv": _any_language(read_tsv),
        ".pdf": read_pdf,
        ".po": read_catalog,
        ".pot": read_catalog,
        ".xlf": read_xliff,
        ".xliff": read_xliff,
        ".json": _any_language(read_json),
        ".arb": read_arb,
        ".yaml": _any_language(read_yaml_file),
        ".yml": _any_language(read_yaml_file),
        ".strings": _any_language(read_strings),
        ".resx": _any_language(read_resx),
        ".xml": _any_language(read_xml),
    }
)


READ_APART = frozenset({".pdf"})
"""Kinds that are read in a process of their own, for which the reader waits."""


def is_read_apart(name: str) -> bool:
    """Whether a file is read in a process of its own, by the end of its name."""
    return PurePath(name).suffix.lower() in READ_APART


def read(name: str, content: bytes, target_lang: str) -> FileDocument:
    """The texts of a file, by the end of its name.

    Args:
        name: Of the file.
        content: The file.
        target_lang: BCP-47 tag of the translation's language.

    Raises:
        UnsupportedFileError: With the kinds that are known.
        BrokenFileError: It cannot be read, or has more than `MAX_TEXTS` texts.
    """
    ending = PurePath(name).suffix.lower()
    if ending not in READERS:
        raise UnsupportedFileError(
            f"files of the kind {ending[:20]!r} are not translated; send one of {', '.join(READERS)}"
        )
    file = READERS[ending](content, target_lang)
    if len(file.texts) > MAX_TEXTS:
        raise BrokenFileError(
            f"the file has {len(file.texts)} texts; at most {MAX_TEXTS} are translated, split it"
        )
    return file
