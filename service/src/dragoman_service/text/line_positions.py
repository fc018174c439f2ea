"""Line breaks of a source that are blanks to a reader: its translation has them behind the same share of its words."""

from __future__ import annotations

import re
from collections.abc import Sequence

BLANK = re.compile(r"[ \t\n\r\f]+")


def with_line_breaks(parts: Sequence[str], blanks: Sequence[str]) -> list[str]:
    """The parts of a translation with line breaks in the place of some of its blanks.

    Args:
        parts: Its text, cut anywhere but within a blank.
        blanks: Those of the source, in order, as it has them.
    """
    count = sum(len(BLANK.findall(part)) for part in parts)
    places: dict[int, str] = {}
    for index, raw in enumerate(blanks):
        at = (2 * index + 1) * count // (2 * len(blanks))
        if raw.strip(" ") and count:
            places.setdefault(at, raw)
    if not places:
        return list(parts)
    numbers = iter(range(count))
    return [BLANK.sub(lambda found: places.get(next(numbers), found[0]), part) for part in parts]
