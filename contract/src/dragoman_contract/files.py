"""Files as pods take them, and routers tell of them."""

from __future__ import annotations

FILE_ENDINGS = (".txt", ".html", ".htm", ".srt", ".docx", ".pptx", ".odt", ".odp", ".epub")
"""Of the names of files that can be translated."""

MOST_FILE_BYTES = 10 * 1024 * 1024
"""Largest form with a file: DeepL takes as much of most kinds on its smallest plan, and most of a document are
pictures, which are not translated; its text has its own limit."""
