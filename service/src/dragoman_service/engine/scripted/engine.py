"""An engine without a model, for tests and benches: it answers a segment by its script, else with its reverse.

As vLLM it has a slot per sequence, a queue before them, abort on close, and the same metric names; its speed is
configured.
"""

from __future__ import annotations

import asyncio
import fcntl
import heapq
import itertools
import math
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_protocols.errors import EngineDeadError, GenerationError
from dragoman_service.engine.arguments import merged
from dragoman_service.engine.protocol import (
    Capacity,
    Chunk,
    Decoding,
    Finish,
    Phase,
    Progress,
    Prompt,
    Report,
    StallDetector,
    TokenCounter,
    output_budget,
)
from dragoman_service.errors import ModelLoadError, SettingsError
from dragoman_service.settings import Settings

CHARS_PER_TOKEN = 4
"""About what subword tokenizers make of European languages."""


@dataclass(frozen=True)
class Script:
    """How the engine behaves; each field may be set by `--engine-args`.

    Args:
        fail_load: If set, the load fails with this message.
        token_s: Seconds for each token after it, when alone.
        slowdown_ratio: By how much each further running sequence stretches `token_s`: 0.1 is a tenth.
        slowdown_power: Power of the number of further sequences: above 1 a batch can be too large to pay.
        max_num_seqs: Maximum concurrent sequences; more wait.
        oom_above_seqs: The load fails if `max_num_seqs` is more, as without enough memory; 0: never.
        max_model_len: Tokens of prompt and output together.
        fail_every: Every so many generations one fails; 0 is none.
        die_after: The engine dies at this many generations; 0 is never.
        sleep_s: Seconds to fall asleep.
        wake_s: Seconds to wake.
        fail_wake: If set, a wake fails with this message.
        stall_after: The engine makes no step from this many generations on; 0: never.
        scheduling_policy: As vLLM's: `fcfs`, or `priority` for the smallest first.
        journal: File that each generation adds a line to when it starts: process id, tab, segment. It shows what a
            pod has started even if the pod is killed.
        memory: File that the engine locks while it is awake, as the memory of one GPU: a load and a wake fail while
            another engine has it.
    """

    load_s: float = 0.0
    fail_load: str = ""
    first_token_s: float = 0.0
    token_s: float = 0.0
    slowdown_ratio: float = 0.0
    slowdown_power: float = 1.0
    max_num_seqs: int = 16
    oom_above_seqs: int = 0
    max_model_len: int = 4096
    fail_every: int = 0
    die_after: int = 0
    stall_after: int = 0
    sleep_s: float = 0.0
    wake_s: float = 0.0
    fail_wake: str = ""
    scheduling_policy: str = "fcfs"
    answers: dict[str, str] = field(default_factory=dict)
    journal: str = ""
    memory: str = ""


def script_from(settings: Settings) -> Script:
    """The script of a pod's settings.

    Raises:
        SettingsError: An engine argument is unknown, set twice, or of the wrong type.
    """
    typed = {
        "max_num_seqs": settings.max_num_seqs,
        "max_model_len": settings.max_model_len,
        "scheduling_policy": "priority" if settings.scheduling_policy == "shortest" else None,
    }
    defaults = Script()
    arguments = merged(typed, settings.engine_args, [known.name for known in fields(Script)])
    for name, value in arguments.items():
        expected = type(getattr(defaults, name))
        if not isinstance(value, (int, float) if expected is float else expected) or isinstance(value, bool):
            raise SettingsError(f"--engine-args: {name} takes {expected.__name__}, not {value!r}")
    return Script(**arguments)


class ScriptedEngine:
    """The protocol of `engine.protocol.Engine`, by script; with vLLM's metric names in `registry`."""

    def __init__(self, script: Script, model_name: str, registry: CollectorRegistry) -> None:
        self._script = script
        self._journal: int | None = None
        self._memory: int | None = None
        self._slots = SlotQueue(script.max_num_seqs, script.scheduling_policy == "priority")
        self._used_tokens = self._generations = 0
        self._dead = self._stalled = self._asleep = False
        self._stall_detector = StallDetector()
        labels = ["model_name", "engine"]
        for name, about, read in (
            ("vllm:num_requests_running", "Requests in the running batch", lambda: self._slots.running),
            ("vllm:num_requests_waiting", "Requests waiting to run", lambda: self._slots.waiting),
            ("vllm:kv_cache_usage_perc", "KV cache usage, 1 is all", self._kv_usage_ratio),
        ):
            gauge = Gauge(name, about, labels, registry=registry)
            gauge.labels(model_name, "0").set_function(read)
        self._tokens = Counter("vllm:generation_tokens", "Tokens written", labels, registry=registry).labels(
            model_name, "0"
        )
        self._queue_s = Histogram(
            "vllm:request_queue_time_seconds", "Time in the queue", labels, registry=registry
        ).labels(model_name, "0")

    async def load(self, report: Report) -> None:
        """Wait for `load_s`, in ten steps."""
        for step in range(10):
            report(Progress(Phase.LOADING, step / 10))
            await asyncio.sleep(self._script.load_s / 10)
        if self._script.fail_load:
            raise ModelLoadError(self._script.fail_load)
        if 0 < self._script.oom_above_seqs < self._script.max_num_seqs:
            raise ModelLoadError(f"there is no memory for {self._script.max_num_seqs} sequences")
        try:
            self._take_memory()
        except GenerationError as error:
            raise ModelLoadError(str(error)) from error
        if self._script.journal:
            try:
                self._journal = os.open(self._script.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ModelLoadError(f"the journal cannot be written: {error}") from error

    @property
    def capacity(self) -> Capacity:
        """Of the script."""
        return Capacity(self._script.max_num_seqs, self._script.max_num_seqs * self._script.max_model_len)

    @property
    def stall_detector(self) -> StallDetector:
        """A step is a token, or a whole output where it is not streamed."""
        return self._stall_detector

    @property
    def max_model_len(self) -> int:
        """By the script."""
        return self._script.max_model_len

    @property
    def hidden_metrics(self) -> frozenset[str]:
        """None."""
        return frozenset()

    def count_tokens(self, text: str) -> int:
        """A token for every four characters."""
        return _tokens(text)

    def counter(self) -> TokenCounter:
        """The same."""
        return TokenCounter(self.max_model_len, _tokens)

    async def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        request_id: str,
        *,
        priority: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Answer with the segment's reverse, at the script's pace."""
        del request_id, trace_headers
        await self.check()
        if self._asleep:
            raise GenerationError("the engine sleeps")
        prompt_tokens = _tokens(prompt.instruction)
        segment_tokens = _tokens(prompt.segment)
        budget = output_budget(
            prompt_tokens, segment_tokens, self._script.max_model_len, max_tokens=decoding.max_tokens
        )
        segment = prompt.segment.strip()
        answer = self._script.answers.get(segment, segment[::-1])
        needed = _tokens(answer)
        length = min(needed, budget)
        with self._stall_detector.generation():
            async with self._slot(prompt_tokens + length, priority):
                self._write_down(segment)
                self._fail_by_script()
                await self._work(self._script.first_token_s)
                if decoding.stream:
                    for start in range(0, len(answer), CHARS_PER_TOKEN):
                        await self._work(self._token_s())
                        self._tokens.inc()
                        yield Chunk(answer[start : start + CHARS_PER_TOKEN])
                    answer = ""
                else:
                    await self._work(self._token_s() * length)
                    self._tokens.inc(length)
        finish = Finish.STOP if length == needed else Finish.LENGTH
        yield Chunk(answer[: length * CHARS_PER_TOKEN], finish, prompt_tokens, length)

    async def sleep(self) -> None:
        """Take `sleep_s`; as with vLLM, generations that run now would fail.

        Raises:
            GenerationError: There are some.
        """
        if self._stall_detector.generating:
            raise GenerationError("the engine generates")
        self._asleep = True
        await asyncio.sleep(self._script.sleep_s)
        self._free_memory()

    async def wake_up(self) -> None:
        """Take `wake_s`.

        Raises:
            GenerationError: The script says so, or another engine has the memory.
        """
        await asyncio.sleep(self._script.wake_s)
        if self._script.fail_wake:
            raise GenerationError(self._script.fail_wake)
        self._take_memory()
        self._asleep = False

    async def check(self) -> None:
        """Raise once the script has let the engine die."""
        if self._dead:
            raise EngineDeadError("the engine died, as its script says")

    async def aclose(self) -> None:
        """Close the journal, and free the memory."""
        self._free_memory()
        if self._journal is not None:
            os.close(self._journal)
            self._journal = None

    def _take_memory(self) -> None:
        if not self._script.memory:
            return
        self._memory = os.open(self._script.memory, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self._memory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._free_memory()
            raise GenerationError("out of memory: another engine has it") from None

    def _free_memory(self) -> None:
        if self._memory is not None:
            os.close(self._memory)
            self._memory = None

    @asynccontextmanager
    async def _slot(self, tokens: int, priority: int) -> AsyncIterator[None]:
        queued_s = time.monotonic()
        async with self._slots.slot(priority):
            self._queue_s.observe(time.monotonic() - queued_s)
            self._used_tokens += tokens
            try:
                yield
            finally:
                self._used_tokens -= tokens

    def _write_down(self, segment: str) -> None:
        """Add to the journal, by one write, as other pods add to it too."""
        if self._journal is not None:
            os.write(self._journal, f"{os.getpid()}\t{segment}\n".encode())

    async def _work(self, seconds: float) -> None:
        """Take this long; forever once the engine is stalled."""
        await asyncio.sleep(seconds)
        if self._stalled:
            await asyncio.get_running_loop().create_future()
        self._stall_detector.step()

    def _token_s(self) -> float:
        others = float(max(0, self._slots.running - 1))
        return self._script.token_s * (
            1 + self._script.slowdown_ratio * math.pow(others, self._script.slowdown_power)
        )

    def _kv_usage_ratio(self) -> float:
        return min(1.0, self._used_tokens / (self._script.max_num_seqs * self._script.max_model_len))

    def _fail_by_script(self) -> None:
        self._generations += 1
        self._stalled = 0 < self._script.stall_after <= self._generations
        if self._script.die_after and self._generations >= self._script.die_after:
            self._dead = True
            raise EngineDeadError("the engine died, as its script says")
        if self._script.fail_every and self._generations % self._script.fail_every == 0:
            raise GenerationError("this generation failed, as the script says")


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


class SlotQueue:
    """Slots of sequences that run at once; further ones wait.

    Args:
        by_priority: Whether the smallest priority is next rather than the first to wait.
    """

    def __init__(self, count: int, by_priority: bool = False) -> None:
        self._free = count
        self._by_priority = by_priority
        self._waiters: list[tuple[int, int, asyncio.Future[None]]] = []
        self._order = itertools.count()
        self.running = 0
        self.waiting = 0

    @asynccontextmanager
    async def slot(self, priority: int = 0) -> AsyncIterator[None]:
        """Wait for a slot and use it; a smaller priority is sooner, with `by_priority`."""
        await self._take(priority)
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._give()

    async def _take(self, priority: int) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        rank = priority if self._by_priority else 0
        heapq.heappush(self._waiters, (rank, next(self._order), turn))
        self.waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()
            raise
        finally:
            self.waiting -= 1

    def _give(self) -> None:
        """Pass a slot to the next that still waits."""
        while self._waiters:
            _, _, turn = heapq.heappop(self._waiters)
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
