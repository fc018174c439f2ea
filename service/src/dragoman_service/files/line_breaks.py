"""Line breaks within a text, and the escapes of spreadsheets, as tags: they are structure, not the model's."""

from __future__ import annotations

import re

SPLITTING_TAGS = frozenset({"br"})
BREAK = "<br/>"
LINE = re.compile(r"(?P<line>\r\n|\r|\n)")
ESCAPES = re.compile(r"(?P<line>(?:_x000D_)?(?:\r\n|\r|\n)|_x000D_)|_x[0-9A-Fa-f]{4}_")
"""Excel writes characters that XML lacks as `_x000D_`. Source: ECMA-376-1:2016, section 22.9.2.19."""
HEADER = re.compile(
    r'(?P<line>&amp;[LCR]|(?:\r\n|\r|\n))|&amp;(?:"[^"]{0,200}"|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d{1,3}|&amp;|.)'
)
"""Codes in the header of a sheet; left, middle and right part are apart. Source: ECMA-376-1:2016, section 18.3.1.46."""
CHOICES = re.compile(r'(?P<line>,)|"')
"""Commas between the values that a cell may have."""
TAG = re.compile(r'<br/>|<x id="e(\d{1,9})"/>')


class LineBreaks:
    """Tags for the line breaks of a text.

    Args:
        written: The text with tags, all other characters escaped.
        signs: What is no text; the group `line` ends a segment.
    """

    def __init__(self, written: str, signs: re.Pattern[str] = LINE) -> None:
        self._signs = signs
        self._lines: list[str] = []
        self._escapes: list[str] = []
        self.text = signs.sub(self._tag, written)
        """With a tag in the place of each."""

    def _tag(self, found: re.Match[str]) -> str:
        raw = found[0].replace("\r", "&#13;")
        if found["line"]:
            self._lines.append(raw)
            return BREAK
        self._escapes.append(raw)
        return f'<x id="e{len(self._escapes) - 1}"/>'

    def put_back(self, translation: str) -> str | None:
        """A translation of `text` with the breaks and escapes; None where some were lost or doubled."""
        lines = iter(self._lines)
        found: list[str] = []

        def raw(tag: re.Match[str]) -> str:
            found.append(tag[0])
            if tag[1] is None:
                return next(lines, "")
            return self._escapes[int(tag[1])] if int(tag[1]) < len(self._escapes) else ""

        whole = TAG.sub(raw, translation)
        wanted = [BREAK] * len(self._lines) + [f'<x id="e{number}"/>' for number in range(len(self._escapes))]
        is_same = sorted(found) == sorted(wanted)
        if self._signs in (HEADER, CHOICES):  # Its own signs would be read as structure.
            is_same = is_same and len(self._signs.findall(whole)) == len(wanted)
        return whole if is_same else None
