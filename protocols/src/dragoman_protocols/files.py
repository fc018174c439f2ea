"""Files that can be translated: endings of their names, media types, limits of pods and routers."""

from __future__ import annotations

import mimetypes
from pathlib import PurePath

# fmt: off
FILE_ENDINGS = (
    ".txt", ".md", ".html", ".htm", ".srt", ".vtt", ".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub",
    ".csv", ".tsv", ".pdf",
    ".po", ".pot", ".xlf", ".xliff", ".json", ".arb", ".yaml", ".yml", ".strings", ".resx", ".xml",
)
# fmt: on
"""Endings of the names of files that can be translated."""

TRANSLATED_ENDINGS = {".pdf": ".docx"}
"""Kinds whose translations are files of another kind."""


def translated_ending(ending: str) -> str:
    """The ending of a translation's name, for that of a file's in lower case."""
    return TRANSLATED_ENDINGS.get(ending, ending)


_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPENDOCUMENT = "application/vnd.oasis.opendocument"
MEDIA_TYPES = {
    ".docx": f"{_OFFICE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE}.presentationml.presentation",
    ".xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    ".odt": f"{_OPENDOCUMENT}.text",
    ".odp": f"{_OPENDOCUMENT}.presentation",
    ".ods": f"{_OPENDOCUMENT}.spreadsheet",
    ".epub": "application/epub+zip",
}
"""Python has these of the operating system, and images have none."""


def media_type(name: str) -> str:
    """The media type of a file, by the ending of its name."""
    ending = PurePath(name).suffix.lower()
    return MEDIA_TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"


FILE_TIMEOUT_S = 600.0
"""Maximum time for one file, at pods and at routers, by default."""
FILE_CHARACTERS = 5000
"""The time limit of a file grows by that of a request for every so many characters: about two pages."""

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Maximum size of a form with a file, as on DeepL's smallest plan; pictures are most of a document. Its text has its
own limit."""
