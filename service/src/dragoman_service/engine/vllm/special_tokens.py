"""Special tokens that a caller's text spells out, kept from acting as such.

A tokenizer turns `<|im_end|>` into the token that ends a turn wherever it stands, also in the text to
translate. A mark put within each of them makes pieces that are tokenized one by one: the model reads the
same characters, and no piece is a special token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MARK = "\uf8ff\ufdd0"
"""Never sent to a model: a private character and one that Unicode promises to be none."""

ACTING = re.compile(r"</?(?:think|tool_call|tool_response)>")
"""Added tokens that act without being called special."""


def acting_tokens(tokenizer: Any) -> re.Pattern[str] | None:
    """A pattern of what a tokenizer takes for special tokens; None if there are none.

    Args:
        tokenizer: As `transformers` has it.
    """
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    names = {str(token.content) for token in added if token.special or ACTING.fullmatch(token.content)}
    names |= set(map(str, getattr(tokenizer, "all_special_tokens", ())))
    # One character alone cannot be cut in two; no tokenizer that is known here has such a one.
    cuttable = sorted((name for name in names if len(name) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, cuttable))) if cuttable else None


def marked(text: str, acting: re.Pattern[str] | None, quoted: Sequence[tuple[int, int]] | None) -> str:
    """`text` with a mark within each special token that its quoted spans spell out.

    Args:
        text: An instruction.
        acting: As `acting_tokens` makes it.
        quoted: Spans that are a caller's words; None is all.
    """
    if MARK in text:
        text = text.replace(MARK, "\ufffd" * len(MARK))
    if acting is None or acting.search(text) is None:
        return text
    parts: list[str] = []
    position = 0
    for start, end in [(0, len(text))] if quoted is None else quoted:
        parts += (text[position:start], acting.sub(_cut, text[start:end]))
        position = end
    return "".join([*parts, text[position:]])


def _cut(found: re.Match[str]) -> str:
    return found[0][:1] + MARK + found[0][1:]
