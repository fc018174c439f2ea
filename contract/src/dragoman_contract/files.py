"""Files as pods take them, and routers tell of them."""

from __future__ import annotations

FILE_ENDINGS = (".txt", ".html", ".htm", ".srt", ".docx", ".pptx", ".odt", ".odp", ".epub")
"""Of the names of files that can be translated."""

FILE_TIMEOUT_S = 600.0
"""Maximum time for one file, at pods and at routers, by default."""
FILE_CHARACTERS = 5000
"""A pod gives a file the time of a request for every so many characters: about two pages."""

MOST_FILE_BYTES = 10 * 1024 * 1024
"""Largest form with a file: DeepL takes as much of most kinds on its smallest plan, and most of a document are
pictures, which are not translated; its text has its own limit."""
