"""A plain chat with the model that a pod translates with: no translation, and none of its guards."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from dataclasses import dataclass, replace

from fastapi import Response
from fastapi.responses import JSONResponse

from dragoman_protocols.errors import EmptyTextError, GenerationError, InvalidFieldError, RequestError
from dragoman_protocols.languages import Pair
from dragoman_service.core.costs import Cost, Demand, cost_of
from dragoman_service.core.translator import Translator
from dragoman_service.dialects.openai.answers import Completion
from dragoman_service.dialects.openai.shapes import ChatRequest
from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Framing, Prompt

ANSWER_TOKENS = 512
"""Expected length of an answer, unless the caller's own bound is less: answers end before the model's context does."""

FINISHES = {Finish.STOP: "stop", Finish.LENGTH: "length", Finish.REPETITION: "stop"}


@dataclass(frozen=True)
class Chat:
    """One chat: work for the engine alone.

    Args:
        asked: The request; its last message is the user's.
        completion: Writes the answer.
    """

    asked: ChatRequest
    completion: Completion
    is_file: bool = False

    @property
    def texts(self) -> Sequence[str]:
        """All that the engine reads."""
        return [message.text for message in self.asked.messages]

    @property
    def cost(self) -> Cost:
        """One generation of all messages."""
        text = "\n".join(self.texts)
        return cost_of([Demand(text, answer_tokens=self._answer_tokens, whole=True)])

    @property
    def characters(self) -> int:
        """Of all messages, whatever their role: all are read for this answer."""
        return sum(map(len, self.texts))

    def reserve(self) -> AbstractContextManager[None]:
        """Nothing: the quota is that of DeepL's API."""
        return nullcontext()

    @property
    def _answer_tokens(self) -> int:
        bound = self.asked.max_completion_tokens or self.asked.max_tokens or ANSWER_TOKENS
        return min(bound, ANSWER_TOKENS)

    @property
    def streams(self) -> bool:
        """Whether the answer is wanted in chunks."""
        return bool(self.asked.stream)

    def check(self, translator: Translator) -> Pair | None:
        """No pair.

        Raises:
            CallerError: The model's family has no chat template, or the last message is not the user's.
        """
        if translator.family.framing is Framing.RAW:
            raise InvalidFieldError(
                "this model knows no chat, only translations: send translation_options with target_lang"
            )
        last = self.asked.messages[-1]
        if last.role != "user":
            raise InvalidFieldError("messages: the last one must have the role user")
        if not last.text.strip():
            raise EmptyTextError("messages: the last one is empty")
        return None

    async def answer(self, translator: Translator) -> Response:
        """The whole answer."""
        text, last = "", None
        async with aclosing(self._chunks(translator)) as chunks:
            async for last in chunks:
                text += last.text
        finish, prompt_tokens, output_tokens = _ended(last)
        return JSONResponse(self.completion.whole(text, finish, prompt_tokens, output_tokens))

    async def stream(self, translator: Translator) -> AsyncGenerator[bytes]:
        """The answer as it comes."""
        last = None
        async with aclosing(self._chunks(translator)) as chunks:
            async for last in chunks:
                yield self.completion.piece(last.text)
        yield self.completion.end(*_ended(last))

    def failed(self, error: RequestError) -> bytes:
        """See `Completion.failed`."""
        return self.completion.failed(error)

    def _chunks(self, translator: Translator) -> AsyncGenerator[Chunk]:
        *before, last = self.asked.messages
        turns = tuple((_role(message.role), message.text) for message in before)
        family = translator.family
        prompt = Prompt(last.text, last.text, family.framing, family.template_args, turns)
        decoding = sampling(self.asked, family.decoding, translator.engine.max_model_len)
        return translator.chat(prompt, decoding, self._answer_tokens)


def sampling(asked: ChatRequest, usual: Decoding, most_tokens: int) -> Decoding:
    """How to choose tokens: as the caller says, and where they do not, as the model's publisher does.

    Args:
        asked: The request.
        usual: The publisher's sampling.
        most_tokens: What the answer may have at most, where the caller does not say.
    """
    return replace(
        usual,
        temperature=usual.temperature if asked.temperature is None else asked.temperature,
        top_p=usual.top_p if asked.top_p is None else asked.top_p,
        stop=usual.stop + asked.stops,
        max_tokens=asked.max_completion_tokens or asked.max_tokens or most_tokens,
        max_prompt_tokens=None,
        stream=bool(asked.stream),
        seed=asked.seed,
        presence_penalty=asked.presence_penalty or 0.0,
        frequency_penalty=asked.frequency_penalty or 0.0,
        stop_on_repetition=False,
    )


def _role(role: str) -> str:
    """OpenAI's newer name for instructions is no role that chat templates know."""
    return "system" if role == "developer" else role


def _ended(last: Chunk | None) -> tuple[str, int, int]:
    if last is None or last.finish is None:
        raise GenerationError("the engine ended the generation without saying why")
    return FINISHES[last.finish], last.prompt_tokens, last.output_tokens
