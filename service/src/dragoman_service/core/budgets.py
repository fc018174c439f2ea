"""Maximum tokens of a segment, by the model's context and the languages."""

from __future__ import annotations

from dragoman_protocols.errors import TextTooLongError
from dragoman_protocols.languages import Language, script

FRAMING_TOKENS = 48
"""Tokens that a chat template adds: turns, and the system prompt of some."""

TERMS_RATIO = 0.125
"""Share of the model's context that is left to a segment's terms."""

MIN_SEGMENT_TOKENS = 16
"""A segment with fewer tokens is no sentence: a prompt that leaves no more is refused."""

TOKENS_OF = {
    "Latn": 1.0, "Cyrl": 1.6, "Grek": 1.8, "Hebr": 1.8, "Arab": 1.6, "Hans": 1.0, "Hant": 1.2, "Jpan": 1.3, "Kore": 1.4,
    "Thai": 2.0, "Armn": 2.5, "Geor": 2.5,
}  # fmt: skip
"""Tokens of a sentence in a script, relative to Latin, with vocabularies of 150 k entries and more."""

OTHER_SCRIPTS = 3.5
"""Indic, Burmese, Khmer, Ethiopic and the like, of which most vocabularies have little more than single letters."""

MARGIN = 1.5
"""Translations of the same sentence differ in length by this factor."""


def expansion_ratio(source: Language, target: Language) -> float:
    """Output tokens per source token, at the usual maximum."""
    cost = [TOKENS_OF.get(script(each.tag) or "Latn", OTHER_SCRIPTS) for each in (source, target)]
    return max(1.0, MARGIN * cost[1] / cost[0])


def segment_budget(
    max_model_len: int,
    max_prompt_tokens: int | None,
    overhead_tokens: int,
    ratio: float,
    max_tokens: int,
    *,
    with_terms: bool = False,
) -> int:
    """Maximum tokens of one segment: at most `max_tokens`, and as many as a prompt and its answer have room for.

    `overhead_tokens` are those of the prompt without the segment and its terms, `ratio` is an `expansion_ratio`.

    Raises:
        TextTooLongError: Context and instructions leave no room.
    """
    taken = overhead_tokens + FRAMING_TOKENS + (int(max_model_len * TERMS_RATIO) if with_terms else 0)
    budget = int((max_model_len - taken) / (1 + ratio))
    if max_prompt_tokens is not None:
        budget = min(budget, max_prompt_tokens - taken)
    if budget < MIN_SEGMENT_TOKENS:
        raise TextTooLongError(
            f"context and instructions take {overhead_tokens} of the {max_model_len} tokens of this model "
            "and leave no room for the text; shorten them"
        )
    return min(budget, max_tokens)
