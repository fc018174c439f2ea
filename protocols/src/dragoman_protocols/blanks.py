"""Texts with nothing to translate: in the lists of some APIs they are answered with themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dragoman_protocols.translation import TranslationResult

UNDETERMINED = "und"


def not_blank(texts: Iterable[str]) -> tuple[str, ...]:
    """Those that are translated."""
    return tuple(text for text in texts if text.strip())


def put_back(
    texts: Sequence[str], results: Iterable[TranslationResult], source_lang: str | None
) -> list[TranslationResult]:
    """The results, and between them the blank texts as they were.

    Args:
        texts: All.
        results: Of those of them that are not blank, in the same order.
        source_lang: Of the request; None: detected.
    """
    coming = iter(results)
    return [
        next(coming) if text.strip() else TranslationResult(text, source_lang or UNDETERMINED, segments=0)
        for text in texts
    ]
