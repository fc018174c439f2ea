"""HTML as Google writes it."""

from __future__ import annotations

import re

from dragoman_protocols.markup_tokens import Kind, tokens

BARE_AMPERSAND = re.compile(r"&(?!#\d+;|#[xX][0-9a-fA-F]+;|\w+;)")


def escaped(text: str) -> str:
    """HTML with its text as Google writes it: no quotation mark and no bare ampersand outside tags.

    Args:
        text: HTML, or what was sent as such.
    """
    return "".join(
        _escaped_text(token.raw) if token.kind is Kind.TEXT else token.raw
        for token in tokens(text, html=True)
    )


def _escaped_text(text: str) -> str:
    text = BARE_AMPERSAND.sub("&amp;", text)
    return text.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;").replace("'", "&#39;")
