"""From a text and a pair to its translation: the core, which knows neither HTTP nor vLLM.

Segments, markup, guards and glossaries belong here; today a text is one segment.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from dragoman_contract.languages import Languages
from dragoman_service.engine.protocol import Chunk, Engine, Finish
from dragoman_service.errors import (
    DeadlineExceededError,
    EmptyOutputError,
    EmptyTextError,
    GenerationError,
    TruncatedOutputError,
)
from dragoman_service.languages import Pair, pair
from dragoman_service.prompts.family import PromptFamily

MOST_SIDE_BY_SIDE = 128
"""Texts of one request that the engine holds at once: handing over a thousand takes the event loop for
longer than other callers should wait, and more than this fill the batch of no CPU and few GPUs."""


@dataclass(frozen=True)
class Translation:
    """What a caller asks for, in the terms of no dialect.

    Args:
        texts: At least one; answered in this order.
        source_lang: BCP-47 tag of the texts.
        target_lang: BCP-47 tag of the translations.
    """

    texts: tuple[str, ...]
    source_lang: str
    target_lang: str


@dataclass(frozen=True)
class Translator:
    """Everything a translation needs that does not change between requests.

    Args:
        engine: What generates.
        family: How the model wants to be asked.
        languages: Pairs that are served; empty means every pair.
        timeout_s: Seconds after which a request is given up.
    """

    engine: Engine
    family: PromptFamily
    languages: tuple[Languages, ...] = ()
    timeout_s: float = 30.0

    def check(self, asked: Translation) -> Pair:
        """The pair asked for.

        Raises:
            CallerError: The texts are empty, or the pair is not served.
        """
        found = pair(asked.source_lang, asked.target_lang, self.languages)
        if not asked.texts:
            raise EmptyTextError("the list of texts is empty")
        for index, text in enumerate(asked.texts):
            if not text.strip():
                which = f"text number {index + 1}" if len(asked.texts) > 1 else "the text"
                raise EmptyTextError(f"{which} is empty; send something to translate")
        return found

    async def translate(self, asked: Translation) -> list[str]:
        """Translate all texts, side by side in the engine.

        Cancelling this aborts every generation that it began.

        Raises:
            CallerError: The request cannot be answered as it is.
            DeadlineExceededError: It took more than `timeout_s`.
            EngineError: The engine failed on one of the texts.
        """
        found = self.check(asked)
        try:
            async with asyncio.timeout(self.timeout_s):
                return await _side_by_side(self, asked.texts, found)
        except TimeoutError:
            raise DeadlineExceededError(
                f"the translation was not finished within {self.timeout_s:g} s and was given up; send less "
                "text at once, or raise --request-timeout-s"
            ) from None


async def _side_by_side(translator: Translator, texts: Sequence[str], found: Pair) -> list[str]:
    """One generation per text; the first failure ends the others."""
    if len(texts) == 1:
        return [await _generated(translator, texts[0], found)]
    places = asyncio.Semaphore(MOST_SIDE_BY_SIDE)

    async def in_turn(text: str) -> str:
        async with places:
            return await _generated(translator, text, found)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(in_turn(text)) for text in texts]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


async def _generated(translator: Translator, text: str, found: Pair) -> str:
    prompt = translator.family.prompt(text, found)
    pieces: list[str] = []
    last: Chunk | None = None
    chunks = translator.engine.generate(prompt, translator.family.decoding, uuid.uuid4().hex)
    async with aclosing(chunks):
        async for last in chunks:
            pieces.append(last.text)
    if last is None or last.finish is None:
        raise GenerationError("the engine ended the generation without saying why")
    if last.finish is Finish.LENGTH:
        raise TruncatedOutputError(
            f"the model wrote {last.output_tokens} tokens without ending its translation of "
            f"{len(text)} characters; it may be repeating itself"
        )
    translation = "".join(pieces).strip()
    if not translation:
        raise EmptyOutputError("the model answered with nothing")
    return translation
