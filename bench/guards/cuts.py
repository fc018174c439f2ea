"""Whole translations made into answers that lack a part, and end as if they lacked nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import StrEnum

import regex

from dragoman_protocols.scripts import scripts_of_language
from dragoman_service.text.segments import sentences

CLAUSE_END = regex.compile(r"[,;:،؛、，；：](?=\s|\p{Han}|[\p{Hiragana}\p{Katakana}])\s*")
WORD_END = regex.compile(r"\s+")
FINAL = regex.compile(r"[.!?…。！？।॥؟۔።။។]+[\"'”’»」』)\]]*\s*$")
UNSPACED = frozenset({"Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})
STOPS = {
    **{"Han": "。", "Devanagari": "।", "Bengali": "।", "Ethiopic": "።", "Khmer": "។", "Myanmar": "။"},
    **{"Thai": "", "Lao": ""},
}
MIN_SHARE = 0.15
"""Of the text that a cut leaves at least, or it would be an empty answer rather than a short one."""


class Cut(StrEnum):
    """Where an answer ends: at the last such place before that share of it."""

    WORD_40 = "40%, at a word"
    WORD_50 = "50%, at a word"
    CLAUSE_50 = "50%, at a clause"
    SENTENCE_50 = "50%, at a sentence"
    ONE_OF_TWO = "one sentence of two"


def cuts(
    source: str, target: str, source_lang: str, target_lang: str, chance: random.Random
) -> Iterator[tuple[Cut, str]]:
    """Each way in which the translation can be cut, and what is left of it."""
    ends = sum(map(len, parts[:1])) if len(parts := sentences(target, target_lang)) > 1 else 0
    scripts = scripts_of_language(target_lang)
    words = [found.start() for found in WORD_END.finditer(target)]
    if scripts & UNSPACED:
        words = list(range(1, len(target)))
    clauses = [found.start() for found in CLAUSE_END.finditer(target)]
    ends_of_sentences: list[int] = []
    for part in parts[:-1]:
        ends_of_sentences.append((ends_of_sentences[-1] if ends_of_sentences else 0) + len(part))
    for cut, places, share in (
        (Cut.WORD_40, words, 0.4),
        (Cut.WORD_50, words, 0.5),
        (Cut.CLAUSE_50, clauses, 0.5),
        (Cut.SENTENCE_50, ends_of_sentences, 0.5),
    ):
        before = [place for place in places if MIN_SHARE * len(target) <= place <= share * len(target)]
        if before:
            yield cut, ended(target[: before[-1]], target, target_lang)
    if ends and len(parts) == 2 and len(sentences(source, source_lang)) == 2:
        yield Cut.ONE_OF_TWO, chance.choice(parts).strip()


def ended(start: str, whole: str, tag: str) -> str:
    """The start of a translation with its end's punctuation."""
    start = start.rstrip(" ,;:،؛、，；：-–—")
    if FINAL.search(start):
        return start
    found = FINAL.search(whole)
    stop = next((STOPS[script] for script in scripts_of_language(tag) if script in STOPS), ".")
    return start + (found[0].strip() if found else stop)
