"""Language and direction in the tags of HTML, of the parts of books, and of OpenDocument's styles; all else stays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from dragoman_protocols.scripts import is_right_to_left

ATTRIBUTES = r"""(?:[^<>"']|"[^"<]*"|'[^'<]*')*"""
ROOT = re.compile(
    rf"<!--(?:.*?-->|.*)|<(?P<name>html|ncx|package)(?=[\s/>]){ATTRIBUTES}>", re.IGNORECASE | re.DOTALL
)
END = re.compile(r"\s*/?>\Z")
NAMES = ("xml:lang", "lang")


def with_language(text: str, lang: str, *, added: str = "") -> str:
    """A document whose root names the language of its translation, and, in HTML, its direction.

    Args:
        text: HTML, XHTML, a table of contents (NCX), or a package document.
        lang: BCP-47 tag of the translation.
        added: Attribute that is added where the root has none of its name.
    """
    root = next((found for found in ROOT.finditer(text) if found["name"]), None)
    if root is None:
        return text
    tag = root[0]
    values = {name: lang for name in NAMES if name == added or attribute(tag, name) is not None}
    is_rtl = is_right_to_left(lang)
    if attribute(tag, "dir") is not None or (is_rtl and root["name"].lower() == "html"):
        values["dir"] = "rtl" if is_rtl else "ltr"
    return text[: root.start()] + with_attributes(tag, values) + text[root.end() :]


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """A start tag with attributes set, in their places or behind the others."""
    for name, value in values.items():
        written = f'{name}="{escape(value)}"'
        if place := _pattern(name).search(tag):
            tag = tag[: place.start()] + written + tag[place.end() :]
        else:
            end = END.search(tag)
            at = end.start() if end else len(tag)
            tag = f"{tag[:at]} {written}{tag[at:]}"
    return tag


def attribute(tag: str, name: str) -> str | None:
    """The value of an attribute of a start tag, as it is written; None: it has none."""
    found = _pattern(name).search(tag)
    return (found[1] or found[2] or found[3] or "") if found else None


def _pattern(name: str) -> re.Pattern[str]:
    return re.compile(rf"""(?<=[\s"']){re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>/]+))""")
