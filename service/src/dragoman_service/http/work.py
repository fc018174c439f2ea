"""What the stages of `pipeline` need of each kind of work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from dragoman_protocols.errors import RequestError
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Answer
from dragoman_service.core.costs import Cost
from dragoman_service.core.translator import Progress, Translator


class Stream(NamedTuple):
    """A streamed answer.

    Args:
        events: Its events; closing it aborts the work in the engine.
        failed: Makes the last event of a stream that cannot be finished.
    """

    events: AsyncGenerator[bytes]
    failed: Callable[[RequestError], bytes]


class Work(ABC):
    """What the core does for one HTTP request.

    Attributes:
        characters: What it is charged for.
        text_count: Texts for the engine.
        is_file: Whether it is a file, whose time limit increases with its size.
        progress: Called with the share of segments that are translated.
    """

    characters: int
    text_count: int
    is_file = False
    progress: Progress | None = None

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Its cost for the engine."""

    @abstractmethod
    def check(self, translator: Translator) -> Pair | None:
        """The pair that it is counted as; None if it is no translation.

        Raises:
            CallerError: It is not supported.
        """

    @abstractmethod
    async def answer(self, translator: Translator) -> Answer:
        """Do it; cancelling aborts it in the engine."""

    def stream(self, translator: Translator) -> Stream | None:
        """Do it as a stream; None if its answer is not streamed."""
        del translator
        return None


class BackgroundWork(Work):
    """Work that can be done without a request that waits for it."""

    is_file = True

    @abstractmethod
    async def translate(self, translator: Translator) -> None:
        """Do it, and keep the result."""
