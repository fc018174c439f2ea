"""Which language a text is in, as an engine pod would find."""

from __future__ import annotations


def detect(text: str, among: tuple[str, ...]) -> str:
    """The BCP-47 tag of a text's language; `und` where it does not tell.

    Args:
        text: Up to a thousand characters.
        among: Tags that come into question; empty is any.
    """
    # Imported when it is first needed: the model costs 90 MB and a second or two of CPU; few routers have to detect.
    from dragoman_protocols import detection

    return detection.detect(text, among).tag
