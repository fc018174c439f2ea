"""Gettext catalogs, .po and .pot: messages without a translation, and fuzzy ones, get one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polib

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, known_encoding, marked_encoding
from dragoman_service.files.values import LETTER

CHARSET = re.compile(rb"^\"Content-Type:[^\"\n]*?charset=([\w.:-]{1,40})", re.MULTILINE | re.IGNORECASE)
"""In the header."""

LONG_LINE = 100
"""A file with a longer line of text is not wrapped."""


def read_catalog(content: bytes, target_lang: str) -> FileDocument:
    """A catalog in UTF-8 or in the encoding that its header names; it is written in UTF-8.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for its header `Language`.

    Raises:
        BrokenFileError: It is none, or is in neither encoding.
    """
    text = decoded(content, marked_encoding(content) or _encoding(content))
    lines = text.splitlines()
    wrap = (
        0 if any(len(line) > LONG_LINE and line.lstrip().startswith(("msg", '"')) for line in lines) else 78
    )
    try:
        # It reads a file where the text is the name of one, which no text with line breaks is.
        catalog: Any = polib.pofile("\n".join(lines) + "\n\n", wrapwidth=wrap, encoding="utf-8")
    except (OSError, ValueError, IndexError, KeyError, AttributeError, TypeError, UnicodeError) as error:
        raise BrokenFileError(f"the file is no gettext catalog: {str(error)[:200]}") from None
    entries = [each for each in catalog if _is_open(each)]
    texts = tuple(text for each in entries for text in _texts(each))

    def rebuild(translations: Sequence[str]) -> bytes:
        left = iter(translations)
        for entry in entries:
            _fill(entry, [next(left) for _ in _texts(entry)])
        if catalog.metadata:
            catalog.metadata |= {
                "Language": target_lang.replace("-", "_"),
                "Content-Type": "text/plain; charset=UTF-8",
                "Content-Transfer-Encoding": "8bit",
            }
        return f"{str(catalog).rstrip()}\n".encode()

    return FileDocument(texts, Format.PLAIN, rebuild)


def _encoding(content: bytes) -> str:
    """UTF-8 wherever it fits: many headers still have xgettext's `charset=CHARSET`, or a charset that was true once."""
    named = CHARSET.search(content)
    try:
        content.decode()
    except UnicodeDecodeError:
        return known_encoding(named[1].decode()) if named else "utf-8"
    return "utf-8"


def _is_open(entry: Any) -> bool:
    return not entry.obsolete and not entry.translated() and LETTER.search(entry.msgid) is not None


def _texts(entry: Any) -> list[str]:
    return [entry.msgid, entry.msgid_plural] if entry.msgid_plural else [entry.msgid]


def _fill(entry: Any, translations: Sequence[str]) -> None:
    if entry.msgid_plural:
        # As many forms as the catalog has; the first is that of one thing where there are two.
        forms = sorted(entry.msgstr_plural) or [0, 1]
        entry.msgstr_plural = {
            form: translations[0] if form == 0 and len(forms) > 1 else translations[1] for form in forms
        }
    else:
        entry.msgstr = translations[0]
    entry.fuzzy = False
    entry.previous_msgid = entry.previous_msgid_plural = entry.previous_msgctxt = None
