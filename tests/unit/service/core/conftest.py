"""A core over an engine whose answers a test defines."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest
from tests.support.engines import AnsweringEngine, Answers

from dragoman_contract.metrics import Metric
from dragoman_protocols.languages import Pair
from dragoman_service.core.stages import Observer, Origin
from dragoman_service.core.translator import Translator
from dragoman_service.core.worker_process import WorkerProcess, WorkerProcessError
from dragoman_service.engine.scripted.engine import Script
from dragoman_service.prompts.families import prompt_family


class Counts(Observer):
    """Counts the work of the core."""

    def __init__(self) -> None:
        self._labels: dict[Metric, list[str]] = defaultdict(list)
        self.apis: set[str] = set()
        self.segments = self.tokens = 0

    def count(self, metric: Metric, *labels: str) -> None:
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
        engine = AnsweringEngine(answers, **script)
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
