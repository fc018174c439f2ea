"""Apple's .strings files: values are translated, comments and keys stay as they are.

Source: https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/LoadingResources/Strings/Strings.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import LETTER

STRING = r'"(?:[^"\\]|\\.)*+"'
GAP = r"(?:\s++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\n]*+\n?)*+"
ENTRY = re.compile(rf"{GAP}(?:{STRING}|[\w.\-]++){GAP}(?:={GAP}({STRING}))?{GAP};", re.DOTALL)
END = re.compile(rf"{GAP}\Z", re.DOTALL)

ESCAPE = re.compile(r"\\(U[0-9a-fA-F]{4}|.)", re.DOTALL)
MEANINGS = {"n": "\n", "t": "\t", "r": "\r"}
WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}


def read_strings(content: bytes) -> FileDocument:
    """A .strings file in UTF-8, or in UTF-16 with a byte order mark.

    Raises:
        BrokenFileError: It is none.
    """
    encoding = marked_encoding(content) or "utf-8"
    text = decoded(content, encoding)
    places: list[tuple[int, int]] = []
    position = 0
    while found := ENTRY.match(text, position):
        if found[1] and LETTER.search(found[1]):
            places.append((found.start(1) + 1, found.end(1) - 1))
        position = found.end()
    if not END.match(text, position):
        line = text.count("\n", 0, position) + 1
        raise BrokenFileError(f'the file is no .strings file: no `"key" = "value";` behind line {line}')
    texts = tuple(ESCAPE.sub(_meaning, text[start:end]) for start, end in places)

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for (start, end), source, translation in zip(places, texts, translations, strict=True):
            raw = text[start:end]
            new = "".join(WRITTEN.get(sign, sign) for sign in translation)
            written += (text[position:start], raw if translation == source else new)
            position = end
        return "".join([*written, text[position:]]).encode(encoding)

    return FileDocument(texts, Format.PLAIN, rebuild)


def _meaning(found: re.Match[str]) -> str:
    sign = found[1]
    return chr(int(sign[1:], 16)) if len(sign) == 5 else MEANINGS.get(sign, sign)
