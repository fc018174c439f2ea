"""Estimates of what a request costs the engine, without a tokenizer, because refusing has to be cheap.

`cost_of` counts everything that the engine is given: texts, targets, alternatives, documents and chats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dragoman_protocols.translation import Split, TranslationRequest

PROMPT_TOKENS = 32
"""Approximate tokens of the instruction around a text."""

FILE_BYTES_PER_TOKEN = 1000
"""A file has a token for so many bytes at least, as a rule: pictures and markup are most of some files."""

BYTES_BEYOND_ASCII_TOKENS = 0.35
ASCII_CHARS_PER_TOKEN = 4
"""Subword tokenizers make about a token of four letters of English, two of Cyrillic, one of Chinese or of
Devanagari; the number of their UTF-8 bytes distinguishes these."""


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, in constant time for each byte and without a tokenizer."""
    beyond = 0 if text.isascii() else len(text.encode(errors="surrogatepass")) - len(text)
    return math.ceil(len(text) / ASCII_CHARS_PER_TOKEN + beyond * BYTES_BEYOND_ASCII_TOKENS)


@dataclass(frozen=True)
class Demand:
    """One text for the engine.

    Args:
        answers: Generations per segment: one, and one for each alternative.
        beside_tokens: Read with each segment beside the instruction: context, instructions.
        answer_tokens: Of each answer; None is as many as the text has.
        whole: Whether the text is one segment; otherwise each line is one.
    """

    text: str
    answers: int = 1
    beside_tokens: int = 0
    answer_tokens: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Cost:
    """Estimated cost of a request.

    Args:
        tokens: Tokens that the engine reads and writes for it.
        longest_tokens: Those of its longest segment, which are sequential.
        generations: Generations of the engine. Retries are added when they start.
    """

    tokens: int
    longest_tokens: int
    generations: int = 1


def demands_of(request: TranslationRequest) -> tuple[Demand, ...]:
    """The texts of a translation request for the engine."""
    beside_tokens = estimated_tokens(request.context) + sum(map(estimated_tokens, request.instructions))
    whole = request.split in (Split.NO_LINES, Split.NONE)
    return tuple(Demand(text, 1 + request.alternatives, beside_tokens, whole=whole) for text in request.texts)


def cost_of(demands: Iterable[Demand]) -> Cost:
    """Estimated cost of a whole request."""
    tokens = longest_tokens = generations = 0
    for demand in demands:
        lines = [line for line in demand.text.splitlines() if line.strip()]
        if not lines:
            continue
        segments = 1 if demand.whole else len(lines)
        read_tokens = estimated_tokens(demand.text)
        written_tokens = read_tokens if demand.answer_tokens is None else demand.answer_tokens
        beside_tokens = PROMPT_TOKENS + demand.beside_tokens
        generations += segments * demand.answers
        tokens += demand.answers * (segments * beside_tokens + read_tokens + written_tokens)
        longest_ratio = 1.0 if demand.whole else max(map(len, lines)) / len(demand.text)
        longest_tokens = max(
            longest_tokens, beside_tokens + math.ceil(longest_ratio * (read_tokens + written_tokens))
        )
    return Cost(tokens, max(PROMPT_TOKENS, longest_tokens), generations)


def least_cost_of_file(size_bytes: int) -> Cost:
    """A low estimate of a file that is not parsed, to refuse it before it is parsed."""
    return Cost(max(1, size_bytes // FILE_BYTES_PER_TOKEN), PROMPT_TOKENS)
