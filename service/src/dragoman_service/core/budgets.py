"""How long a segment may be, so that its prompt and its translation fit the model."""

from __future__ import annotations

from dragoman_protocols.errors import TextTooLongError
from dragoman_protocols.languages import Language, script

FRAMING_TOKENS = 48
"""What a chat template adds: turns, and the system prompt that some write by themselves."""

TERMS_RATIO = 0.125
"""Share of the model's context that is left to a segment's terms."""

LEAST_TOKENS = 16
"""A segment under this is no sentence: what leaves no more room is refused."""

TOKENS_OF = {
    "Latn": 1.0, "Cyrl": 1.6, "Grek": 1.8, "Hebr": 1.8, "Arab": 1.6, "Hans": 1.0, "Hant": 1.2, "Jpan": 1.3, "Kore": 1.4,
    "Thai": 2.0, "Armn": 2.5, "Geor": 2.5,
}  # fmt: skip
"""About how many tokens a sentence takes in a script, against Latin, with vocabularies of 150 k entries and more."""

OTHER_SCRIPTS = 3.5
"""Indic, Burmese, Khmer, Ethiopic and the like, of which most vocabularies have little more than single letters."""

MARGIN = 1.5
"""Translations of the same sentence differ in length by this factor."""


def expansion_ratio(source: Language, target: Language) -> float:
    """Output tokens for each token of a source, at the most that is usual.

    Args:
        source: Language of the text.
        target: Language of its translation.
    """
    cost = [TOKENS_OF.get(script(each.tag) or "Latn", OTHER_SCRIPTS) for each in (source, target)]
    return max(1.0, MARGIN * cost[1] / cost[0])


def segment_budget(
    max_model_len: int,
    max_prompt_tokens: int | None,
    overhead_tokens: int,
    ratio: float,
    most_tokens: int,
    *,
    with_terms: bool = False,
) -> int:
    """Most tokens of one segment.

    Args:
        max_model_len: Tokens of prompt and output together that the model holds.
        max_prompt_tokens: Longest prompt that it was made for, None if that is no less.
        overhead_tokens: Of the prompt without the segment and its terms.
        ratio: As `expansion_ratio` gives it.
        most_tokens: Longest segment that the model translates well.
        with_terms: Whether room is left for terms.

    Raises:
        TextTooLongError: Context and instructions leave no room.
    """
    taken = overhead_tokens + FRAMING_TOKENS + (int(max_model_len * TERMS_RATIO) if with_terms else 0)
    room = int((max_model_len - taken) / (1 + ratio))
    if max_prompt_tokens is not None:
        room = min(room, max_prompt_tokens - taken)
    if room < LEAST_TOKENS:
        raise TextTooLongError(
            f"context and instructions take {overhead_tokens} of the {max_model_len} tokens that this model holds "
            "and leave no room for the text; shorten them"
        )
    return min(room, most_tokens)
