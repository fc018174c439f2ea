"""Which files can be translated, by the ends of their names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType

from dragoman_protocols.errors import BrokenFileError, UnsupportedFileError
from dragoman_service.files.document import EMBEDDED, MAX_TEXTS, FileDocument

READERS: MappingProxyType[str, str] = MappingProxyType(
    {
        ".txt": "plain.read_text",
        ".md": "markdown.read_markdown",
        ".html": "html.read_html",
        ".htm": "html.read_html",
        ".srt": "subtitles.read_subtitles",
        ".vtt": "subtitles.read_vtt",
        ".docx": "office.read_word",
        ".pptx": "office.read_powerpoint",
        ".xlsx": "spreadsheets.read_excel",
        ".odt": "opendocument.read_opendocument",
        ".odp": "opendocument.read_opendocument",
        ".ods": "opendocument.read_opendocument",
        ".epub": "books.read_book",
        ".csv": "tables.read_csv",
        ".tsv": "tables.read_tsv",
        ".pdf": "pdf.read_pdf",
        ".po": "catalogs.read_catalog",
        ".pot": "catalogs.read_catalog",
        ".xlf": "xliff.read_xliff",
        ".xliff": "xliff.read_xliff",
        ".json": "json_text.read_json",
        ".arb": "json_text.read_arb",
        ".yaml": "yaml_text.read_yaml_file",
        ".yml": "yaml_text.read_yaml_file",
        ".strings": "strings_text.read_strings",
        ".resx": "xml_text.read_resx",
        ".xml": "xml_text.read_xml",
    }
)
"""Modules of this package and functions, from a file's bytes to `FileDocument`.

Imported when used: with all of them the process for a file would start in twice the time.
"""

NAMES_TARGET = frozenset(
    {".html", ".htm", ".pdf", ".po", ".pot", ".xlf", ".xliff", ".xml", ".arb"}
    | {".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub"}
)
"""Kinds that name the target language: their readers get its tag as the second argument."""


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
    module, _, function = READERS[ending].partition(".")
    reader: Callable[..., FileDocument] = getattr(import_module(f"dragoman_service.files.{module}"), function)
    file = reader(content, target_lang) if ending in NAMES_TARGET else reader(content)
    if file.left and ending in EMBEDDED:
        file = import_module("dragoman_service.files.embedded").with_embedded(file, content, target_lang)
    if len(file.texts) > MAX_TEXTS:
        raise BrokenFileError(
            f"the file has more than {MAX_TEXTS} texts; at most {MAX_TEXTS} are translated, split it"
        )
    return file
