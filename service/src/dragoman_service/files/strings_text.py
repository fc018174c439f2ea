"""Apple's .strings files: values are translated, comments and keys stay as they are.

Source: https://developer.apple.com/library/archive/documentation/Cocoa/Conceptual/LoadingResources/Strings/Strings.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.messages import Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.spelling import Spelling
from dragoman_service.files.values import LETTER

STRING = r'"(?:[^"\\]|\\.)*+"'
GAP = r"(?:\s++|/\*(?:[^*]|\*(?!/))*+\*/|//[^\n]*+\n?)*+"
ENTRY = re.compile(rf"{GAP}(?:{STRING}|[\w.\-]++){GAP}(?:={GAP}({STRING}|[\w.\-/:$]++))?{GAP};", re.DOTALL)
END = re.compile(rf"{GAP}\Z", re.DOTALL)

ESCAPE = re.compile(r"\\(U[0-9a-fA-F]{4}|[0-7]{3}|u[0-9a-fA-F]{4}|.)|[^\\]", re.DOTALL)
MEANINGS = {"n": "\n", "t": "\t", "r": "\r"}
RESERVED = re.compile(r"\\(?![0-7]{3}|u[0-9a-fA-F]{4})|[\"\n\r]")
WRITTEN = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}

WIDE = re.compile(rb"(?:[^\0]\0){4}")
"""How UTF-16 without a byte order mark begins."""


def read_strings(content: bytes) -> FileDocument:
    """A .strings file in UTF-8 or UTF-16.

    Raises:
        BrokenFileError: It is none.
    """
    encoding = marked_encoding(content) or ("utf-16-le" if WIDE.match(content) else "utf-8")
    text = decoded(content, encoding)
    places: list[tuple[int, int]] = []
    position = 0
    while found := ENTRY.match(text, position):
        if found[1] and LETTER.search(found[1]):
            places.append(found.span(1))
        position = found.end()
    if not END.match(text, position):
        line = text.count("\n", 0, position) + 1
        raise BrokenFileError(f'the file is no .strings file: no `"key" = "value";` behind line {line}')
    raws = [text[start:end] for start, end in places]
    signs = [
        [(_meaning(sign), sign[0]) for sign in ESCAPE.finditer(raw[1:-1] if raw.startswith('"') else raw)]
        for raw in raws
    ]
    texts = ["".join(meaning for meaning, _ in each) for each in signs]

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str] = []
        position = 0
        for (start, end), raw, of_raw, source, translation in zip(
            places, raws, signs, texts, translations, strict=True
        ):
            (new,) = Spelling(of_raw).of([translation], _escaped)
            written += (text[position:start], raw if translation == source else f'"{new}"')
            position = end
        return "".join([*written, text[position:]]).encode(encoding)

    return message_document([Message(source, signs="&") for source in texts], rebuild)


def _escaped(text: str) -> str:
    return RESERVED.sub(lambda sign: WRITTEN[sign[0]], text)


def _meaning(found: re.Match[str]) -> str:
    sign = found[1]
    if sign is None:
        return found[0]
    if sign[0] in "01234567u" and len(sign) > 1:
        return found[0]  # Octal numbers are of an encoding that is not known here.
    return chr(int(sign[1:], 16)) if len(sign) == 5 else MEANINGS.get(sign, sign)
