"""How many tokens an output may have: prompt and output share what the model holds."""

from __future__ import annotations

from dragoman_protocols.errors import TextTooLongError

MIN_OUTPUT_TOKENS = 16
"""Room that even the shortest segment's translation gets: a word of one token can become a phrase."""

MAX_EXPANSION_RATIO = 8
"""Most output tokens per source token that are still taken for a translation and not for a loop: scripts
that a tokenizer knows poorly cost several times the tokens of English."""


def output_budget(
    prompt_tokens: int,
    segment_tokens: int,
    max_model_len: int,
    max_prompt_tokens: int | None = None,
    max_tokens: int | None = None,
) -> int:
    """Most tokens that the output may have.

    Args:
        prompt_tokens: Tokens of the whole prompt.
        segment_tokens: Tokens of the text within it.
        max_model_len: Tokens that the model holds, prompt and output together.
        max_prompt_tokens: Longest prompt that the model was made for; None is as long as it holds.
        max_tokens: What was asked for; None leaves it to the segment's length.

    Returns:
        As many as fit, at most what was asked for, or else what a translation of this length plausibly needs.

    Raises:
        TextTooLongError: The prompt is too long, or leaves no room for an output as long as the text.
    """
    if max_prompt_tokens is not None and prompt_tokens > max_prompt_tokens:
        raise TextTooLongError(
            f"the text makes a prompt of {prompt_tokens} tokens, and this model was made for at most "
            f"{max_prompt_tokens}; send it in smaller pieces"
        )
    needed = (
        max(MIN_OUTPUT_TOKENS, segment_tokens) if max_tokens is None else min(MIN_OUTPUT_TOKENS, max_tokens)
    )
    room = max_model_len - prompt_tokens
    if room < needed:
        raise TextTooLongError(
            f"the text makes a prompt of {prompt_tokens} tokens and its translation needs about {needed}, over "
            f"the {max_model_len} that this model holds; send it in smaller pieces"
        )
    if max_tokens is None:
        max_tokens = MIN_OUTPUT_TOKENS * 4 + MAX_EXPANSION_RATIO * segment_tokens
    return min(room, max_tokens)
