"""HTML as Google writes it."""

from __future__ import annotations

import re

MARKUP = re.compile(
    r"""<!--.*?-->|<(script|style)\b.*?</\1\s*>|</?[a-zA-Z!?](?:"[^"]*"|'[^']*'|[^'">])*>""", re.DOTALL | re.I
)
BARE_AMPERSAND = re.compile(r"&(?!#\d+;|#[xX][0-9a-fA-F]+;|\w+;)")


def escaped(text: str) -> str:
    """HTML with its text as Google writes it: no quotation mark and no bare ampersand outside tags.

    Args:
        text: HTML, or what was sent as such.
    """
    pieces, end = [], 0
    for tag in MARKUP.finditer(text):
        pieces += [_escaped_text(text[end : tag.start()]), tag[0]]
        end = tag.end()
    return "".join([*pieces, _escaped_text(text[end:])])


def _escaped_text(text: str) -> str:
    text = BARE_AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#39;")
