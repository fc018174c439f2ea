"""An engine that sleeps while the pod is idle, and that the next generation wakes.

Where several pods share a GPU, it is awake only while the pod has the turn.

Every change of state is one task. A generation waits for the task, and can be cancelled without an effect on the task.
The engine is put to sleep only while none runs; an idle one only while none waits either.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_protocols.errors import EngineDeadError
from dragoman_service.engine.protocol import (
    Capacity,
    Chunk,
    Decoding,
    Prompt,
    Report,
    SleepableEngine,
    StallDetector,
    TokenCounter,
)
from dragoman_service.metric_definitions import ENGINE_ASLEEP, ENGINE_WAKE_SECONDS, ENGINE_WAKES

if TYPE_CHECKING:  # it brings a client of Redis along, which most pods do not need
    from dragoman_service.engine.turns import Turns

log = logging.getLogger(__name__)

POLL_S = 0.25
"""Minimum time between two checks whether the pod is idle."""

TURN_S = 5.0
"""Minimum time that a busy engine stays awake while other pods wait for the GPU. To fall asleep and to wake take half a
second together (one H100, 1.7 B; bench/results/h100/wakes.json)."""

TURN_POLL_S = 0.1
"""Interval at which the pod checks whether another pod waits."""

GAP_S = 0.25
"""Time without requests after which it does not stay awake for that."""

WAKE_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class SleepMetrics:
    """Whether the engine sleeps, how often it woke, and how long that took."""

    def __init__(self, registry: CollectorRegistry, model_name: str) -> None:
        labels = ["model_name"]
        asleep = Gauge(ENGINE_ASLEEP.name, ENGINE_ASLEEP.help, labels, registry=registry)
        wakes = Counter(ENGINE_WAKES.name, ENGINE_WAKES.help, labels, registry=registry)
        wake_s = Histogram(
            ENGINE_WAKE_SECONDS.name,
            ENGINE_WAKE_SECONDS.help,
            labels,
            buckets=WAKE_BUCKETS_S,
            registry=registry,
        )
        self.asleep = asleep.labels(model_name)
        self.wakes = wakes.labels(model_name)
        self.wake_s = wake_s.labels(model_name)


class SleepingEngine:
    """The protocol of `engine.protocol.Engine`, by another one that it puts to sleep; used from the event loop alone.

    A change of state that fails, or takes too long, leaves the engine in an unknown state: it counts as dead.

    Args:
        engine: Put to sleep and woken; it is closed with this one.
        after_s: Seconds without requests after which it sleeps.
        limit_s: Maximum seconds to fall asleep, and to wake.
        idle_s: Seconds without requests so far; 0 while there are any, and while the engine must not sleep.
        failed: Called once the engine counts as dead.
        turns: Turns on a GPU that it shares; None if it shares none.
    """

    def __init__(
        self,
        engine: SleepableEngine,
        after_s: float,
        limit_s: float,
        idle_s: Callable[[], float],
        failed: Callable[[], None],
        metrics: SleepMetrics,
        turns: Turns | None = None,
    ) -> None:
        self._engine = engine
        self._after_s, self._limit_s = after_s, limit_s
        self._idle_s, self._failed = idle_s, failed
        self._metrics = metrics
        self._turns = turns
        self._generations = self._running = 0
        self._drained = asyncio.Event()
        self._drained.set()
        self._asleep = self._closed = False
        self._awake_since_s: float | None = None  # not loaded yet
        self._change: asyncio.Task[None] | None = None
        self._failure: str | None = None

    async def watch(self) -> None:
        """Put the engine to sleep whenever the pod has been idle for long enough, or another pod waits for the GPU.

        Runs until it is cancelled.
        """
        while True:
            until_idle_s = max(POLL_S, self._after_s - self._idle_s())
            await asyncio.sleep(until_idle_s if self._turns is None else min(until_idle_s, TURN_POLL_S))
            self.sleep_if_idle()

    def sleep_if_idle(self) -> None:
        """Start to put the engine to sleep if it is awake, and idle for long enough or its turn is over."""
        if self._asleep or self._change is not None or self._ended:
            return
        if not self._generations and self._idle_s() >= self._after_s:
            log.info("no requests for %.0f s: the engine falls asleep", self._idle_s())
            self._change = asyncio.create_task(self._fall_asleep())
        elif self._turns is not None and self._turns.is_wanted and self._has_had_its_turn:
            self._change = asyncio.create_task(self._fall_asleep())

    @property
    def _has_had_its_turn(self) -> bool:
        if self._awake_since_s is None:
            return False
        is_idle = not self._generations and self._idle_s() >= GAP_S
        return is_idle or time.monotonic() - self._awake_since_s >= TURN_S

    async def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        request_id: str,
        *,
        priority: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Wake the engine if it sleeps, then answer as it does."""
        self._generations += 1
        try:
            await self._awake()
        except BaseException:
            self._generations -= 1
            raise
        self._running += 1
        self._drained.clear()
        try:
            chunks = self._engine.generate(
                prompt, decoding, request_id, priority=priority, trace_headers=trace_headers
            )
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk
        finally:
            self._generations -= 1
            self._running -= 1
            if not self._running:
                self._drained.set()

    async def check(self) -> None:
        """Raise EngineDeadError once the engine has exited, or could not be woken or put to sleep."""
        if self._failure is not None:
            raise EngineDeadError(self._failure)
        await self._engine.check()

    async def aclose(self) -> None:
        """End a change of state, close the engine, then give the turn back."""
        self._closed = True
        if self._change is not None:
            self._change.cancel()
            await asyncio.wait((self._change,))
        await self._engine.aclose()
        if self._turns is not None:
            await self._turns.aclose()

    async def _awake(self) -> None:
        """Return once the engine is awake; the first caller starts to wake it.

        Raises:
            EngineDeadError: It cannot be woken.
        """
        while not self._ended and (self._asleep or self._change is not None):
            if self._change is None:
                self._change = asyncio.create_task(self._wake_up())
            # A caller that is cancelled does not cancel the task.
            await asyncio.wait((self._change,))
        if self._ended:
            raise EngineDeadError(self._failure or "the engine is shut down")

    @property
    def _ended(self) -> bool:
        return self._closed or self._failure is not None

    async def _fall_asleep(self) -> None:
        # Generations that come now wait, so that those that run end soon.
        await self._drained.wait()
        if await self._changed(self._sleep(), "be put to sleep"):
            self._asleep = True
            self._metrics.asleep.set(1)

    async def _sleep(self) -> None:
        await self._engine.sleep()
        if self._turns is not None:
            await self._turns.give_back()

    async def _wake_up(self) -> None:
        if self._turns is not None:
            await self._turns.take()
        began_s = time.monotonic()
        if await self._changed(self._engine.wake_up(), "be woken"):
            self._asleep = False
            self._awake_since_s = time.monotonic()
            took_s = self._awake_since_s - began_s
            self._metrics.asleep.set(0)
            self._metrics.wakes.inc()
            self._metrics.wake_s.observe(took_s)
            log.info("the engine woke in %.2f s", took_s)

    async def _changed(self, change: Awaitable[None], what: str) -> bool:
        """Await a change of state; whether it succeeded. The task of it ends in the same turn of the event loop."""
        try:
            async with asyncio.timeout(self._limit_s):
                await change
        except Exception as error:
            self._failure = await self._reason(error, what)
            log.exception("%s", self._failure)
            self._failed()
        finally:
            self._change = None
        return self._failure is None

    async def _reason(self, error: Exception, what: str) -> str:
        if isinstance(error, TimeoutError):
            return f"the engine could not {what} within {self._limit_s:g} s; this pod must restart"
        try:
            await self._engine.check()
        except EngineDeadError as death:
            return str(death)
        return (
            f"the engine could not {what} ({type(error).__name__}: {str(error)[:300]}); this pod must restart"
        )

    @property
    def capacity(self) -> Capacity:
        """Of the engine."""
        return self._engine.capacity

    @property
    def stall_detector(self) -> StallDetector:
        """Of the engine: it does not count while the engine sleeps or wakes."""
        return self._engine.stall_detector

    @property
    def max_model_len(self) -> int:
        """Of the engine."""
        return self._engine.max_model_len

    @property
    def hidden_metrics(self) -> frozenset[str]:
        """Of the engine."""
        return self._engine.hidden_metrics

    def count_tokens(self, text: str) -> int:
        """As the engine does."""
        return self._engine.count_tokens(text)

    def counter(self) -> TokenCounter | None:
        """Of the engine."""
        return self._engine.counter()

    async def load(self, report: Report) -> None:
        """Load the engine, which is awake then; on a shared GPU once the pod has the turn."""
        if self._turns is not None:
            log.info("waiting for the turn on the shared GPU")
            await self._turns.take()
        await self._engine.load(report)
        self._awake_since_s = time.monotonic()
