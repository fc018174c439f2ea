"""The loads: endless requests of known lengths, or of what a file of real ones holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

from dragoman_bench.vocabulary import Vocabulary, vocabulary
from dragoman_tune.requests import SampleRequest, read_requests, repeated

UNIFORM_TOKENS = 64
MIN_TOKENS = 10
MAX_TOKENS = 200

UNIFORM = "uniform"
VARIABLE = "variable"
LOADS = (UNIFORM, VARIABLE)


def counted(kind: str, words: Vocabulary, seed: int) -> Iterator[SampleRequest]:
    """Texts for a counting checkpoint, as many tokens long as their answers.

    Args:
        kind: `uniform`: 64 tokens each. `variable`: 10 to 200, half log-uniform and half uniform, which makes
            85 on average.
        words: Of the checkpoint's tokenizer.
        seed: The same requests for the same seed.
    """
    draw = Random(seed)
    while True:
        tokens = UNIFORM_TOKENS if kind == UNIFORM else _variable(draw)
        # An answer of n tokens is n - 1 words of the chain and its end.
        yield SampleRequest(_text(words, tokens, draw), "en", "de", tokens)


def _variable(draw: Random) -> int:
    if draw.random() < 0.5:
        return draw.randint(MIN_TOKENS, MAX_TOKENS)
    return round(math.exp(draw.uniform(math.log(MIN_TOKENS), math.log(MAX_TOKENS))))


def _text(words: Vocabulary, tokens: int, draw: Random) -> str:
    """So many words, the last of which is followed by `tokens - 1` others in the chain."""
    body = draw.choices(words.source, k=tokens - 1)
    return " ".join([*body, words.target[len(words.target) - tokens]])


def stream(kind: str, model: Path, requests: Path | None, seed: int) -> Iterator[SampleRequest]:
    """The requests of one measurement.

    Raises:
        RequestsFileError: The file cannot be used.
        VocabularyError: The checkpoint does not have the bench's words.
    """
    if requests is not None:
        return repeated(read_requests(requests), seed)
    return counted(kind, words_of(model), seed)


@cache
def words_of(model: Path) -> Vocabulary:
    """The words of a checkpoint.

    Raises:
        VocabularyError: Its tokenizer has too few.
    """
    from transformers import AutoTokenizer

    return vocabulary(AutoTokenizer.from_pretrained(model))
