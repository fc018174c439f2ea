"""Where answers are judged: beside the event loop where there is a process for it, else in slices of its time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import Pair
from dragoman_service.core.checks_process import GuardProcess, GuardsGoneError
from dragoman_service.core.evaluate import Answer, Verdict, expectation, output_of, verdict_of
from dragoman_service.core.slices import Slice
from dragoman_service.text.guards import Expectation, Finding, check
from dragoman_service.text.preparation import Segment

JUDGED_INLINE_CHARS = 2_000
"""Longer texts, source and answer together, are judged in a thread: the guards take about 2 µs a character."""

Findings = tuple[Finding, ...]


class Judge:
    """Judges answers so that many that come at once do not keep the event loop from others.

    Without a process for it, in slices: a lock that lets one through at a time takes a turn of the loop for each, and a
    thread waits milliseconds for a busy loop to let it in, so that with hundreds of generations in flight either judges
    fewer answers than an engine gives.

    Args:
        beside: A process for the guards, run by whoever made it; None has none.
    """

    def __init__(self, beside: GuardProcess | None = None) -> None:
        self._beside = beside
        self._waiting: deque[tuple[asyncio.Future[Findings], str, str, Expectation]] = deque()
        self._working = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judge")

    async def verdict(self, segment: Segment, answer: Answer, pair: Pair, terms: Sequence[Term]) -> Verdict:
        """What is wrong with an answer.

        Args:
            segment: What was asked for.
            answer: What came.
            pair: Its languages.
            terms: Those that apply to the segment.
        """
        output = output_of(segment, answer)
        found = await self.findings(segment.text, output, expectation(answer, pair))
        return verdict_of(segment, answer, terms, output, found)

    async def findings(self, source: str, output: str, expected: Expectation) -> Findings:
        """See `guards.check`."""
        if self._beside is not None and self._beside.is_free:
            with suppress(GuardsGoneError):
                return await self._beside.check(source, output, expected)
        loop = asyncio.get_running_loop()
        if len(source) + len(output) > JUDGED_INLINE_CHARS:
            return await loop.run_in_executor(self._thread, check, source, output, expected)
        found: asyncio.Future[Findings] = loop.create_future()
        self._waiting.append((found, source, output, expected))
        if not self._working:
            self._working = True
            loop.call_soon(self._work, loop)
        return await found

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        slice_ = Slice()
        while self._waiting and not slice_.is_over:
            found, source, output, expected = self._waiting.popleft()
            if found.done():
                # Who asked has left.
                continue
            try:
                found.set_result(check(source, output, expected))
            except Exception as error:
                found.set_exception(error)
        if self._waiting:
            loop.call_soon(self._work, loop)
        else:
            self._working = False
