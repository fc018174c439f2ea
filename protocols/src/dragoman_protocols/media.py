"""Media types of translated files."""

from __future__ import annotations

import mimetypes
from pathlib import PurePath

OFFICE = "application/vnd.openxmlformats-officedocument"
OPEN = "application/vnd.oasis.opendocument"
TYPES = {
    ".docx": f"{OFFICE}.wordprocessingml.document",
    ".pptx": f"{OFFICE}.presentationml.presentation",
    ".xlsx": f"{OFFICE}.spreadsheetml.sheet",
    ".odt": f"{OPEN}.text",
    ".odp": f"{OPEN}.presentation",
    ".ods": f"{OPEN}.spreadsheet",
    ".epub": "application/epub+zip",
}
"""Python has these of the operating system, and images have none."""


def media_type(name: str) -> str:
    """The media type of a file, by the ending of its name."""
    ending = PurePath(name).suffix.lower()
    return TYPES.get(ending) or mimetypes.guess_type(name)[0] or "application/octet-stream"
