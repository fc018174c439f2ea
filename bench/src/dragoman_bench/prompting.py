"""Puts a request into the words that the pod would use, for the arms that are not the pod."""

from __future__ import annotations

from functools import cache
from typing import Any

import langcodes

from dragoman_tune.requests import SampleRequest

COUNTING_TEMPLATE = "Translate into {target}: {text}"
"""For counting checkpoints: the text comes last."""

CHAT_TEMPLATE = "Translate the following text from {source} into {target}.\n{source}: {text}\n{target}:"
"""What the demo model was trained on, and any chat model understands."""

LEAST_ROOM_TOKENS = 64
ROOM_RATIO = 8
"""An output may have 64 + 8 × the text's tokens, as in the pod."""


class Prompting:
    """Prompts as the pod's family `custom` makes them.

    Args:
        tokenizer: The model's, as `transformers` has it; its chat template is used where it has one.
        template: With {text} and, where wanted, {source} and {target}.
        max_model_len: Tokens of prompt and output together.
    """

    def __init__(self, tokenizer: Any, template: str, max_model_len: int) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._max_model_len = max_model_len
        self._chat = bool(getattr(tokenizer, "chat_template", None))

    def framed(self, request: SampleRequest) -> str:
        """The whole text that the model reads."""
        instruction = self._template
        values = {
            "{source}": _english(request.source_lang),
            "{target}": _english(request.target_lang),
            "{text}": request.text,
        }
        for placeholder, value in values.items():
            instruction = instruction.replace(placeholder, value)
        if not self._chat:
            return instruction
        turn = [{"role": "user", "content": instruction}]
        return str(self._tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))

    def encoded(self, request: SampleRequest) -> tuple[list[int], int]:
        """Token ids of the prompt, and the most tokens that the output may have."""
        ids = list(self._tokenizer.encode(self.framed(request), add_special_tokens=not self._chat))
        text_tokens = len(self._tokenizer.encode(request.text, add_special_tokens=False))
        return ids, self.room(len(ids), text_tokens)

    def guessed_room(self, request: SampleRequest) -> int:
        """The same without counting tokens, for a client that should not spend its time on that."""
        words = len(request.text.split())
        return self.room(self._max_model_len // 2, request.output_tokens or 2 * words)

    def room(self, prompt_tokens: int, text_tokens: int) -> int:
        """Most tokens of output."""
        return max(1, min(self._max_model_len - prompt_tokens, LEAST_ROOM_TOKENS + ROOM_RATIO * text_tokens))


@cache
def _english(tag: str) -> str:
    return str(langcodes.Language.get(tag).display_name("en"))
