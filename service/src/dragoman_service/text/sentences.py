"""Where sentences end, in many languages."""

from __future__ import annotations

from collections.abc import Iterator

import regex
import sentencex  # type: ignore[import-untyped]

WINDOW_CHARS = 2000
"""sentencex 1.0 takes time quadratic in what it is given where sentences end without a space (Chinese:
6 s for 100,000 characters); windows of this length bound that at 0.2 s."""

SENTENCE_END = regex.compile(r"[^.!?…。！？।॥؟۔።]*+(?:[.!?…。！？।॥؟۔።]++[\"'”’»」』)\]]*+\s*+|\Z)")
"""For text that sentencex refuses or would not give back whole."""


def sentences(text: str, lang: str = "en") -> list[str]:
    """The sentences of a text; joined they are `text`.

    Args:
        text: Any length; time grows linearly with it.
        lang: BCP-47 tag; an unknown one falls back to English rules.

    Returns:
        Sentences with the blanks that follow them. A sentence longer than two windows may be cut within.
    """
    return list(_windowed(text, lang.split("-")[0].lower()))


def _windowed(text: str, lang: str) -> Iterator[str]:
    start = 0
    while len(text) - start > WINDOW_CHARS:
        found = _library(text[start : start + WINDOW_CHARS], lang)
        whole = found[:-1] if len(found) > 1 else found  # the last may go on in the next window
        yield from whole
        start += sum(map(len, whole))
    if start < len(text):
        yield from _library(text[start:], lang)


def _library(text: str, lang: str) -> list[str]:
    try:
        found: list[str] = list(sentencex.segment(lang, text))
    except UnicodeEncodeError:  # a lone surrogate, which JSON can carry
        found = []
    if "".join(found) != text:
        found = SENTENCE_END.findall(text)
    return [sentence for sentence in found if sentence]
