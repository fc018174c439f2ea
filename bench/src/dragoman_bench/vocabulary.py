"""Words that are one token each, so that a text of n words has n tokens."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from typing import Any

from dragoman_bench.errors import VocabularyError

FEWEST = 200
"""The longest answer of the loads."""


@dataclass(frozen=True)
class Vocabulary:
    """Words of two languages, each one token with the blank before it.

    Args:
        source: English words, of which texts are made.
        target: German words; the last word of a text names where in this list its answer begins.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    target_ids: tuple[int, ...]


def vocabulary(tokenizer: Any) -> Vocabulary:
    """The words that a tokenizer has as single tokens.

    Raises:
        VocabularyError: It has too few.
    """
    source = [word for word in _words("english.txt") if _token(tokenizer, word) is not None]
    target = [(word, _token(tokenizer, word)) for word in _words("german.txt")]
    known = [(word, token) for word, token in target if token is not None]
    if len(source) < FEWEST or len(known) < FEWEST:
        raise VocabularyError(
            f"the tokenizer has {len(source)} English and {len(known)} German words of the bench as single "
            f"tokens, and {FEWEST} of each are needed: use the demo model's"
        )
    words, ids = zip(*known[:FEWEST], strict=True)
    return Vocabulary(tuple(source), words, ids)


def _words(name: str) -> list[str]:
    return (resources.files("dragoman_bench") / "data" / name).read_text(encoding="utf-8").split()


def _token(tokenizer: Any, word: str) -> int | None:
    ids = tokenizer.encode(f" {word}", add_special_tokens=False)
    return int(ids[0]) if len(ids) == 1 else None
