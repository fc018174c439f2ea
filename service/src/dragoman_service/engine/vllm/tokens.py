"""From instructions to token ids, with a Hugging Face tokenizer."""

from __future__ import annotations

import asyncio
import copy
import pickle
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from dragoman_protocols.errors import GenerationError, InvalidFieldError
from dragoman_service.engine.protocol import Decoding, Framing, Prompt
from dragoman_service.errors import PromptTemplateError

INLINE_CHARS = 20_000
"""Longer instructions are encoded in a thread: this many take about 5 ms, during which nothing else runs."""

COUNTED = 512
COUNTED_CHARS = 4_000
"""Cached counts, of texts up to this length: a segment may be counted when it is cut and when it is sent."""


class ModelTokenizer:
    """Encodes prompts with a tokenizer of `transformers`, and knows which stop strings are tokens.

    Attributes:
        counter: Counts as `count`; picklable. None if there is no Rust tokenizer.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        # A tokenizer is not safe to use from two threads at once.
        self._in_thread = copy.deepcopy(tokenizer)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenize")
        # The Rust tokenizer beneath takes callers from any thread, and none of the time that is spent around it.
        self._rust = getattr(tokenizer, "backend_tokenizer", None)
        self.counter = None if self._rust is None else RustCounter(pickle.dumps(self._rust))
        self._counting = threading.Lock()
        self._cached_count = lru_cache(maxsize=COUNTED)(self._count)
        self._special = special_tokens(tokenizer)
        self._acting = acting_tokens(tokenizer)
        self.has_chat_template = bool(getattr(tokenizer, "chat_template", None))
        self.stops = lru_cache(maxsize=64)(self._stops)

    def check(self, framing: Framing) -> None:
        """Check at the start that instructions can be framed this way.

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

    def count(self, text: str) -> int:
        """The number of tokens of a text alone."""
        return self._cached_count(text) if len(text) <= COUNTED_CHARS else self._count(text)

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of an output, without special tokens."""
        if self._rust is not None:
            return str(self._rust.decode(list(token_ids), skip_special_tokens=True))
        text = self._tokenizer.decode(
            list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return str(text)

    async def encode(self, prompt: Prompt) -> tuple[list[int], int]:
        """Token ids of a prompt, and how many tokens its segment has.

        Raises:
            GenerationError: The chat template does not take the instruction.
            InvalidFieldError: It does not take the turns before the instruction.
        """
        if len(prompt.instruction) <= INLINE_CHARS:
            return self._encode(self._tokenizer, prompt)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._encode, self._in_thread, prompt)

    def _count(self, text: str) -> int:
        if self._rust is not None:
            return _rust_count(self._rust, text)
        with self._counting:
            return len(self._in_thread.encode(_readable(text), add_special_tokens=False))

    def _encode(self, tokenizer: Any, prompt: Prompt) -> tuple[list[int], int]:
        instruction = marked(_readable(prompt.instruction), self._acting, prompt.quoted)
        in_chat = self._in_chat(prompt.framing)
        text = self._framed(tokenizer, instruction, prompt) if in_chat else instruction
        # A template writes the special tokens itself.
        return self._pieces(tokenizer, text, prompt.segment, add_special_tokens=not in_chat)

    def _framed(self, tokenizer: Any, instruction: str, prompt: Prompt) -> str:
        turns = [
            {"role": role, "content": marked(_readable(content), self._acting, None)}
            for role, content in prompt.turns
        ]
        try:
            framed: str = tokenizer.apply_chat_template(
                [*turns, {"role": "user", "content": instruction}],
                tokenize=False,
                add_generation_prompt=True,
                **prompt.template_args,
            )
        except Exception as error:
            # A template is a program of the model's publisher, which may raise anything.
            if prompt.turns:
                raise InvalidFieldError(
                    f"the model's chat template does not take these turns: {error}"
                ) from error
            raise GenerationError(f"the model's chat template failed: {error}") from error
        return framed

    def _pieces(
        self, tokenizer: Any, text: str, segment: str, *, add_special_tokens: bool
    ) -> tuple[list[int], int]:
        """Token ids of a text, of what stands between its marks piece by piece, and tokens of the segment in it."""
        first, *others = text.split(MARK)
        if self._rust is not None and not others:
            encoding = self._rust.encode(text, add_special_tokens=add_special_tokens)
            return list(encoding.ids), _tokens_of(encoding, text, segment) or self.count(segment)
        ids = self._ids(tokenizer, first, add_special_tokens)
        for piece in others:
            ids += self._ids(tokenizer, piece, False)
        return ids, self.count(segment)

    def _ids(self, tokenizer: Any, text: str, add_special_tokens: bool) -> list[int]:
        if self._rust is not None:
            return list(self._rust.encode(text, add_special_tokens=add_special_tokens).ids)
        return list(tokenizer.encode(text, add_special_tokens=add_special_tokens))

    def _in_chat(self, framing: Framing) -> bool:
        return framing is Framing.CHAT or (framing is Framing.CHAT_IF_ANY and self.has_chat_template)

    def _stops(self, decoding: Decoding) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """Stop strings, and stop token ids; a string that is one special token counts as its id.

        Special tokens are left out of the output's text, so that as strings they would never be found.
        """
        special = {
            text: self._tokenizer.convert_tokens_to_ids(text)
            for text in decoding.stop
            if text in self._special
        }
        strings = tuple(text for text in decoding.stop if text not in special)
        return strings, decoding.stop_token_ids + tuple(special.values())


@dataclass(frozen=True)
class RustCounter:
    """Counts tokens with a Rust tokenizer, in a process without `transformers`.

    Args:
        pickled: The tokenizer. Pickling it takes up to a second, in which the interpreter's lock is held.
    """

    pickled: bytes

    def __call__(self, text: str) -> int:
        """The number of tokens of a text alone."""
        return _rust_count(self._tokenizer, text)

    @cached_property
    def _tokenizer(self) -> Any:
        return pickle.loads(self.pickled)


def _rust_count(tokenizer: Any, text: str) -> int:
    return len(tokenizer.encode(_readable(text), add_special_tokens=False))


def _tokens_of(encoding: Any, text: str, segment: str) -> int | None:
    """Tokens of a segment within a text that was encoded; None where it is not in it as it is."""
    start = text.rfind(segment)
    if start < 0 or not segment:
        return None
    first, last = encoding.char_to_token(start), encoding.char_to_token(start + len(segment) - 1)
    return None if first is None or last is None else last - first + 1


def _readable(text: str) -> str:
    """`text` without lone surrogates, which JSON can carry and no tokenizer takes; of the same length."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text)
    return text


MARK = "\uf8ff\ufdd0"
"""Never sent to a model: a private character and one that Unicode promises to be none."""

ACTING = re.compile(r"</?(?:think|tool_call|tool_response)>")
"""Added tokens that act without being called special."""


def special_tokens(tokenizer: Any) -> frozenset[str]:
    """The special tokens, which are left out of the text of an output."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    names = {str(token.content) for token in added if token.special}
    return frozenset(names.union(map(str, getattr(tokenizer, "all_special_tokens", ()))))


def acting_tokens(tokenizer: Any) -> re.Pattern[str] | None:
    """A pattern of what a tokenizer takes for special tokens; None if there are none."""
    added = getattr(tokenizer, "added_tokens_decoder", {}).values()
    names = special_tokens(tokenizer) | {
        str(token.content) for token in added if ACTING.fullmatch(token.content)
    }
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
