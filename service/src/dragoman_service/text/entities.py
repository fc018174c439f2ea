"""Character references of HTML."""

from __future__ import annotations

import html
import re

ENDLESS = re.compile(r"&(?=#[0-9]{8})")
"""No character has a number of eight digits; Python refuses to read thousands of digits as a number."""


def unescaped(text: str) -> str:
    """`html.unescape` for text from anywhere: references to numbers that no character has stay as they are."""
    return html.unescape(ENDLESS.sub("&amp;", text))
