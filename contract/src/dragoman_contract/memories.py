"""When a segment of a text is one of a translation memory."""

from __future__ import annotations


def segment_key(segment: str) -> str:
    """What two segments have in common that are the same but for white space, in which files differ."""
    return " ".join(segment.split())
