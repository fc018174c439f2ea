"""From instructions to token ids, with a Hugging Face tokenizer."""

from __future__ import annotations

import asyncio
import copy
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

from dragoman_service.engine.protocol import Decoding, Framing, Prompt
from dragoman_service.errors import GenerationError, PromptTemplateError

INLINE_CHARS = 20_000
"""Longer instructions are encoded in a thread: this many take about 5 ms, during which nothing else runs."""


class Tokens:
    """Encodes prompts, and knows which stop strings are tokens.

    Args:
        tokenizer: As `transformers` has it.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        # A tokenizer is not safe to use from two threads at once.
        self._in_thread = copy.deepcopy(tokenizer)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenize")
        self.has_chat_template = bool(getattr(tokenizer, "chat_template", None))
        self.stops = lru_cache(maxsize=64)(self._stops)

    def check(self, framing: Framing) -> None:
        """Find out before the first request whether instructions can be framed so.

        Raises:
            PromptTemplateError: There is no chat template, or it takes no plain user's turn.
        """
        if framing is Framing.CHAT and not self.has_chat_template:
            raise PromptTemplateError(
                "the model's tokenizer has no chat template, which this prompt family needs: use the family "
                "that the model was made for, or custom with a template"
            )
        try:
            self._encode(self._tokenizer, Prompt("a", "a", framing))
        except GenerationError as error:
            raise PromptTemplateError(
                f"{error}; use the prompt family that the model was made for"
            ) from error

    async def encode(self, prompt: Prompt) -> tuple[list[int], int]:
        """Token ids of a prompt, and how many tokens its segment has.

        Raises:
            GenerationError: The chat template does not take the instruction.
        """
        if len(prompt.instruction) <= INLINE_CHARS:
            return self._encode(self._tokenizer, prompt)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._encode, self._in_thread, prompt)

    def _encode(self, tokenizer: Any, prompt: Prompt) -> tuple[list[int], int]:
        segment_tokens = len(tokenizer.encode(prompt.segment, add_special_tokens=False))
        if not self._in_chat(prompt.framing):
            return list(tokenizer.encode(prompt.instruction)), segment_tokens
        try:
            framed = tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt.instruction}],
                tokenize=False,
                add_generation_prompt=True,
                **prompt.template_args,
            )
        except Exception as error:
            # A template is a program of the model's publisher, which may raise anything.
            raise GenerationError(f"the model's chat template failed: {error}") from error
        # The template writes the special tokens itself.
        return list(tokenizer.encode(framed, add_special_tokens=False)), segment_tokens

    def _in_chat(self, framing: Framing) -> bool:
        return framing is Framing.CHAT or (framing is Framing.CHAT_IF_ANY and self.has_chat_template)

    def _stops(self, decoding: Decoding) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Stop strings, and stop token ids; a string that is one special token counts as its id.

        Special tokens are left out of the output's text, so that as strings they would never be found.
        """
        special = {
            text: self._tokenizer.convert_tokens_to_ids(text)
            for text in decoding.stop
            if text in self._tokenizer.get_vocab()
        }
        strings = tuple(text for text in decoding.stop if text not in special)
        return strings, decoding.stop_token_ids + tuple(special.values())
