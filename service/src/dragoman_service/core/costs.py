"""What a request takes of the engine, estimated without a tokenizer, for refusing has to be cheap.

All that the engine is given is counted here, by `cost_of`: texts, targets, alternatives, documents and chats.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from dragoman_protocols.translation import Split, TranslationRequest

PROMPT_TOKENS = 32
"""About what the instruction around a text costs."""

BYTES_BEYOND_ASCII_TOKENS = 0.35
ASCII_CHARS_PER_TOKEN = 4
"""Subword tokenizers make about a token of four letters of English, two of Cyrillic, one of Chinese or of
Devanagari; how many bytes UTF-8 takes for them tells these apart without looking at any."""


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, in constant time for each byte and without a tokenizer."""
    beyond = 0 if text.isascii() else len(text.encode(errors="surrogatepass")) - len(text)
    return math.ceil(len(text) / ASCII_CHARS_PER_TOKEN + beyond * BYTES_BEYOND_ASCII_TOKENS)


@dataclass(frozen=True)
class Demand:
    """One text for the engine.

    Args:
        text: What it reads.
        answers: Generations of each segment: one, and one for each alternative.
        beside_tokens: Read with each segment beside the instruction: context, instructions.
        answer_tokens: Of each answer; None is as many as the text has.
        whole: Whether the text is one segment; else each line is one.
    """

    text: str
    answers: int = 1
    beside_tokens: int = 0
    answer_tokens: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Cost:
    """What a request takes, as estimated.

    Args:
        tokens: That the engine will read and write for it.
        longest_tokens: Those of them that come one after the other: of its longest segment.
        generations: That the engine will start for it. Retries are added when they start.
    """

    tokens: int
    longest_tokens: int
    generations: int = 1


def demands_of(asked: TranslationRequest) -> tuple[Demand, ...]:
    """What a translation request gives the engine."""
    beside_tokens = estimated_tokens(asked.context) + sum(map(estimated_tokens, asked.instructions))
    whole = asked.split in (Split.NO_LINES, Split.NONE)
    return tuple(Demand(text, 1 + asked.alternatives, beside_tokens, whole=whole) for text in asked.texts)


def cost_of(demands: Iterable[Demand]) -> Cost:
    """About what all of a request takes; its segments are generated side by side as a rule."""
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
