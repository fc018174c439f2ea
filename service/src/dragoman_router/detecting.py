"""Which language a text is in, as an engine pod would find."""

from __future__ import annotations

from dragoman_router.dialects import names
from dragoman_service.text import detection


def load() -> None:
    """Load what reading requests needs: the names of languages and the model that detects them.

    On first use they would hold up the event loop: 60 ms, and a second where a node reads them from its disk.
    """
    names.load()
    detection.detect("What is loaded on first use is loaded now.")


def detect(text: str, among: tuple[str, ...]) -> str:
    """The BCP-47 tag of a text's language; `und` where it does not tell.

    Args:
        text: Up to a thousand characters.
        among: Tags that come into question; empty is any.
    """
    return detection.detect(text, among).tag
