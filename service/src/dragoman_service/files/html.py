"""HTML files: one text each, written back in the encoding in which it came, with its new language."""

from __future__ import annotations

import re

from dragoman_protocols.markup_tokens import TokenKind, tokens
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, known_encoding, marked_encoding
from dragoman_service.files.xml_source import with_attributes

CHARSET = re.compile(rb"""<meta\s[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_.:\-]{1,40})""", re.IGNORECASE)
"""Source: https://html.spec.whatwg.org/multipage/parsing.html#prescan-a-byte-stream-to-determine-its-encoding"""

PRESCAN_BYTES = 1024


def read_html(content: bytes, target_lang: str) -> FileDocument:
    """An HTML file, in the encoding that its byte order mark or `<meta charset>` names, else UTF-8.

    Characters of a translation that this encoding lacks are written as character references.

    Args:
        content: The file.
        target_lang: BCP-47 tag that the translated file names.

    Raises:
        BrokenFileError: It is not in that encoding, or it is unknown.
    """
    named = CHARSET.search(content, 0, PRESCAN_BYTES)
    encoding = marked_encoding(content) or known_encoding(named[1].decode() if named else "utf-8")
    text = decoded(content, encoding)
    return FileDocument(
        (text,),
        Format.HTML,
        lambda texts: in_language(texts[0], target_lang).encode(encoding, "xmlcharrefreplace"),
    )


def in_language(html: str, tag: str) -> str:
    """A document that names its language and direction where the source names them; from right to left, always."""
    parts: list[str] = []
    position = 0
    direction = "rtl" if is_right_to_left(tag) else "ltr"
    for token in tokens(html, html=True):
        raw = token.raw
        if token.kind is TokenKind.OPEN and token.name in ("html", "body"):
            turned = token.name == "html" and direction == "rtl"
            attributes = {
                name: value
                for name, value in (("lang", tag), ("xml:lang", tag), ("dir", direction))
                # What a template fills in stays.
                if (token.attribute(name) or (turned and name != "xml:lang"))
                and "{" not in (token.attribute(name) or "")
            }
            raw = with_attributes(raw, attributes)
        parts.append(raw)
        position += len(token.raw)
        if token.name == "body":
            break
    return "".join([*parts, html[position:]])
