"""Line breaks within a text, and the escapes of spreadsheets, as tags: they are structure, not the model's."""

from __future__ import annotations

import re

SPLITTING_TAGS = frozenset({"br"})
BREAK = "<br/>"
SIGN = re.compile(r"(?P<line>(?:_x000D_)?(?:\r\n|\r|\n)|_x000D_)|_x[0-9A-Fa-f]{4}_")
"""Excel writes characters that XML lacks as `_x000D_`. Source: ECMA-376-1:2016, section 22.9.2.19."""
LINE = re.compile(r"\r\n|\r|\n")
TAG = re.compile(r'<br/>|<x id="e(\d{1,9})"/>')


class LineBreaks:
    """Tags for the line breaks of a text.

    Args:
        written: The text with tags, all other characters escaped.
        escapes: Whether `_x000D_` and the like are escapes, as in spreadsheets.
    """

    def __init__(self, written: str, *, escapes: bool = False) -> None:
        self._lines: list[str] = []
        self._escapes: list[str] = []
        self.text = (SIGN if escapes else LINE).sub(self._tag, written)
        """With a tag in the place of each."""

    def _tag(self, found: re.Match[str]) -> str:
        raw = found[0].replace("\r", "&#13;")
        if found.re is LINE or found["line"]:
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
        return whole if sorted(found) == sorted(wanted) else None
