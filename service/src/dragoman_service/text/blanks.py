"""Spaces between the sentences of a translation: none in Chinese and Japanese, one in other languages."""

from __future__ import annotations

from dataclasses import replace

import regex

from dragoman_protocols.languages import Pair
from dragoman_protocols.scripts import scripts_of_language
from dragoman_service.text.guards import KANA, UNSPACED
from dragoman_service.text.segmented_text import SegmentedText

WITHOUT_BLANKS = KANA | {"Han"}
"""Scripts that write no blank between sentences; Thai, for example, writes one there, and none between words."""

_ATTRIBUTES = r"""(?:[^>"']|"[^"]*+"|'[^']*+')*+"""
TAGS_AND_BLANK = regex.compile(
    rf"(?P<closing>(?:</{_ATTRIBUTES}>)*+)(?P<before>(?:<{_ATTRIBUTES}>)*+)(?P<blank> ?+)"
    rf"(?P<after>(?:<{_ATTRIBUTES}>)*+)"
)


def spaced(document: SegmentedText, pair: Pair) -> SegmentedText:
    """Add or remove spaces between the segments of a paragraph, as the target language writes them.

    Text between two segments stays if it is more than a space and inline tags, such as a line break.

    Args:
        document: As it was prepared; its segments are in the source language.
        pair: Languages of the document and of its translation.
    """
    source, target = (scripts_of_language(each.tag) for each in (pair.source, pair.target))
    without_blanks = bool(target) and target <= WITHOUT_BLANKS
    differs = not source <= WITHOUT_BLANKS if without_blanks else source <= UNSPACED
    if len(document.segments) < 2 or not source or not differs:
        return document
    between = list(document.between)
    for number in range(1, len(document.segments)):
        found = TAGS_AND_BLANK.fullmatch(between[number]) if document.joints[number] else None
        if found is None or bool(found["blank"]) != without_blanks:
            continue
        tags = found["before"] + found["after"]
        if without_blanks:
            between[number] = found["closing"] + tags
        elif not _is_one_word(document.segments[number - 1].source, document.segments[number].source):
            between[number] = f"{found['closing']} {tags}"
    return replace(document, between=tuple(between))


def _is_one_word(before: str, after: str) -> bool:
    """Whether a cut is within a word or a number of another script, which is longer than a segment."""
    return all(each.isascii() and each.isalnum() for each in (before[-1], after[0]))
