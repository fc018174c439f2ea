"""A core over an engine whose answers a test defines."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_contract.metrics import Metric
from dragoman_protocols.languages import Pair
from dragoman_service.core.stages import Observer, Origin
from dragoman_service.core.translator import Translator
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Prompt
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.prompts.families import prompt_family

Answers = Callable[[str, int], str | Chunk]
"""From a segment and how often it was requested before to an answer."""


class SpokenEngine(ScriptedEngine):
    """Answers by a function of the segment.

    Args:
        answers: The answer, or the chunk that has it.
        script: See there.
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
        self.prompts.append(prompt)
        self.decodings.append(decoding)
        self.options.append(options)
        answer = self._answers(prompt.segment, self._times[prompt.segment])
        self._times[prompt.segment] += 1
        async for chunk in super().generate(prompt, decoding, request_id, **options):
            if chunk.finish is not None:
                yield answer if isinstance(answer, Chunk) else Chunk(answer, Finish.STOP, 10, 5)


class Counts(Observer):
    """Counts the work of the core."""

    def __init__(self) -> None:
        self._labels: dict[Metric, list[str]] = defaultdict(list)
        self.apis: set[str] = set()
        self.segments = self.tokens = 0

    def count(self, metric: Metric, *labels: str, amount: int = 1) -> None:
        self._labels[metric].append(" ".join(labels))

    def of(self, metric: Metric) -> list[str]:
        """The label of each time that it was counted."""
        return self._labels[metric]

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        self.apis.add(origin.api)
        self.segments += 1
        self.tokens += prompt_tokens + output_tokens


@pytest.fixture
def counts() -> Counts:
    return Counts()


@pytest.fixture
def core(counts: Counts) -> Callable[..., Translator]:
    """Makes a core: `core(answers, family="hy-mt2", languages=…, …, first_token_s=…)`."""

    def make(answers: Answers, family: str = "chatml-generic", **options: Any) -> Translator:
        script = {name: options.pop(name) for name in list(options) if name in Script.__dataclass_fields__}
        template = options.pop("template", None)
        engine = SpokenEngine(answers, **script)
        return Translator(engine, prompt_family(family, template), observer=counts, **options)

    return make


@pytest.fixture
def started() -> Callable[[WorkerProcess, Awaitable[object]], AbstractAsyncContextManager[None]]:
    """Runs a process, which its first call starts and does not wait for, until it takes calls."""

    @asynccontextmanager
    async def run(process: WorkerProcess, first_call: Awaitable[object]) -> AsyncIterator[None]:
        running = asyncio.create_task(process.run())
        with pytest.raises(WorkerProcessError):
            await first_call
        async with asyncio.timeout(60):
            await process.up.wait()
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    return run
