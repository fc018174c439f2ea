"""A plain chat with the model that a pod translates with: no translation, and none of its guards."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal

from dragoman_protocols.chat import Chat, End, Sampling
from dragoman_protocols.errors import GenerationError, InvalidFieldError
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Answer
from dragoman_service.core.costs import Cost, Demand, cost_of
from dragoman_service.core.translator import Translator
from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Framing, Prompt
from dragoman_service.http.work import Stream, Work

ANSWER_TOKENS = 512
"""Expected length of an answer, unless the client's maximum is less: answers end before the model's context does."""

FINISHES: dict[Finish, Literal["stop", "length"]] = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.REPETITION: "stop",
}


@dataclass
class ChatWork(Work):
    """One chat: work for the engine alone."""

    chat: Chat

    def __post_init__(self) -> None:
        self.characters, self.text_count = self.chat.characters, len(self.chat.turns)

    @property
    def cost(self) -> Cost:
        """One generation of all messages."""
        text = "\n".join(text for _, text in self.chat.turns)
        return cost_of([Demand(text, answer_tokens=self._answer_tokens, whole=True)])

    def check(self, translator: Translator) -> Pair | None:
        """No pair.

        Raises:
            CallerError: The model's family has no chat template.
        """
        if translator.family.framing is Framing.RAW:
            raise InvalidFieldError(
                "this model supports translations only, no chat: send translation_options with target_lang"
            )
        return None

    async def answer(self, translator: Translator) -> Answer:
        """The whole answer."""
        text, last = "", None
        async with aclosing(self._chunks(translator)) as chunks:
            async for last in chunks:
                text += last.text
        return self.chat.writer.whole(text, _end(last))

    def stream(self, translator: Translator) -> Stream | None:
        """The answer's events, if the client requests a stream."""
        return Stream(self._events(translator), self.chat.writer.failed) if self.chat.stream else None

    async def _events(self, translator: Translator) -> AsyncGenerator[bytes]:
        last = None
        async with aclosing(self._chunks(translator)) as chunks:
            async for last in chunks:
                yield self.chat.writer.piece(last.text)
        yield self.chat.writer.end(_end(last))

    @property
    def _answer_tokens(self) -> int:
        return min(self.chat.sampling.max_tokens or ANSWER_TOKENS, ANSWER_TOKENS)

    def _chunks(self, translator: Translator) -> AsyncGenerator[Chunk]:
        *before, (_, last) = self.chat.turns
        family = translator.family
        prompt = Prompt(last, last, family.framing, family.template_args, tuple(before))
        decoding = decoding_of(
            self.chat.sampling, family.decoding, translator.engine.max_model_len, stream=self.chat.stream
        )
        return translator.chat(prompt, decoding, self._answer_tokens)


def decoding_of(sampling: Sampling, default: Decoding, max_tokens: int, *, stream: bool) -> Decoding:
    """How to choose tokens: the client's values, else those of the model's publisher, and `max_tokens`."""
    return replace(
        default,
        temperature=default.temperature if sampling.temperature is None else sampling.temperature,
        top_p=default.top_p if sampling.top_p is None else sampling.top_p,
        stop=default.stop + sampling.stop,
        max_tokens=sampling.max_tokens or max_tokens,
        max_prompt_tokens=None,
        stream=stream,
        seed=sampling.seed,
        presence_penalty=sampling.presence_penalty,
        frequency_penalty=sampling.frequency_penalty,
        stop_on_repetition=False,
    )


def _end(last: Chunk | None) -> End:
    if last is None or last.finish is None:
        raise GenerationError("the engine ended the generation without a reason")
    return End(FINISHES[last.finish], last.prompt_tokens, last.output_tokens)
