"""The scripted engine with answers that a test defines, and a record of what was generated."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from prometheus_client import CollectorRegistry

from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Prompt
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine

Answer = str | Chunk | Sequence[Chunk]
Answers = Callable[[str, int], Answer]
"""From a segment and how often it was requested before to its translation, or to the chunks of the output."""


class AnsweringEngine(ScriptedEngine):
    """Answers by a function of the segment.

    Args:
        answers: The answers.
        script: Fields of the `Script`: how long a generation takes, and how much the engine takes.
    """

    def __init__(self, answers: Answers, **script: Any) -> None:
        super().__init__(Script(**script), "m", CollectorRegistry())
        self._answers = answers
        self.prompts: list[Prompt] = []
        self.decodings: list[Decoding] = []
        self.options: list[dict[str, Any]] = []
        self._times: Counter[str] = Counter()

    async def generate(
        self, prompt: Prompt, decoding: Decoding, request_id: str, **options: Any
    ) -> AsyncGenerator[Chunk]:
        """The answer, once the script's output is complete."""
        self.prompts.append(prompt)
        self.decodings.append(decoding)
        self.options.append(options)
        answer = self._answers(prompt.segment, self._times[prompt.segment])
        self._times[prompt.segment] += 1
        async for _ in super().generate(prompt, decoding, request_id, **options):
            pass
        if isinstance(answer, str):
            answer = Chunk(answer, Finish.STOP, 10, 5)
        for chunk in [answer] if isinstance(answer, Chunk) else answer:
            yield chunk
