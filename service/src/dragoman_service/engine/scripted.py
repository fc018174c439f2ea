"""An engine without a model, for tests and benches: it answers every segment with its reverse.

It keeps vLLM's promises (a place per sequence and a queue before them, abort on close) and vLLM's metric
names, at a pace that is set, so that everything around an engine can be tried without one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, fields

from prometheus_client import CollectorRegistry, Gauge

from dragoman_service.engine.arguments import merged
from dragoman_service.engine.budget import output_budget
from dragoman_service.engine.protocol import Chunk, Decoding, Finish, Prompt, Report
from dragoman_service.errors import (
    EngineDeadError,
    GenerationError,
    ModelLoadError,
    SettingsError,
)
from dragoman_service.lifecycle import Phase, Progress
from dragoman_service.settings import Settings

CHARS_PER_TOKEN = 4
"""About what subword tokenizers make of European languages."""


@dataclass(frozen=True)
class Script:
    """How the engine behaves; each field may be set by `--engine-args`.

    Args:
        load_s: Seconds until it is ready.
        fail_load: When set, the load ends in an error with these words.
        first_token_s: Seconds to the first token.
        token_s: Seconds for each token after it, when alone.
        slowdown_ratio: By how much each further running sequence stretches `token_s`: 0.1 is a tenth.
        max_num_seqs: Sequences that run side by side; more wait.
        max_model_len: Tokens of prompt and output together.
        fail_every: Every so many generations one fails; 0 is none.
        die_after: The engine dies at this many generations; 0 is never.
    """

    load_s: float = 0.0
    fail_load: str = ""
    first_token_s: float = 0.0
    token_s: float = 0.0
    slowdown_ratio: float = 0.0
    max_num_seqs: int = 16
    max_model_len: int = 4096
    fail_every: int = 0
    die_after: int = 0


def script_from(settings: Settings) -> Script:
    """The script that a pod's settings ask for.

    Raises:
        SettingsError: An engine argument is unknown, set twice, or of the wrong type.
    """
    typed = {"max_num_seqs": settings.max_num_seqs, "max_model_len": settings.max_model_len}
    defaults = Script()
    arguments = merged(typed, settings.engine_args, [known.name for known in fields(Script)])
    for name, value in arguments.items():
        wanted = type(getattr(defaults, name))
        if not isinstance(value, (int, float) if wanted is float else wanted) or isinstance(value, bool):
            raise SettingsError(f"--engine-args: {name} takes {wanted.__name__}, not {value!r}")
    return Script(**arguments)


class ScriptedEngine:
    """The protocol of `engine.protocol.Engine`, by script.

    Args:
        script: How to behave.
        model_name: Label of the metrics.
        registry: Where vLLM's metric names are registered.
    """

    def __init__(self, script: Script, model_name: str, registry: CollectorRegistry) -> None:
        self._script = script
        self._places = asyncio.Semaphore(script.max_num_seqs)
        self._running = self._waiting = self._held_tokens = self._generations = 0
        self._dead = False
        for name, about, read in (
            ("vllm:num_requests_running", "Requests in the running batch", lambda: self._running),
            ("vllm:num_requests_waiting", "Requests waiting to run", lambda: self._waiting),
            ("vllm:kv_cache_usage_perc", "KV cache usage, 1 is all", self._kv_usage_ratio),
        ):
            gauge = Gauge(name, about, ["model_name", "engine"], registry=registry)
            gauge.labels(model_name, "0").set_function(read)

    async def load(self, report: Report) -> None:
        """Wait for `load_s`, in ten steps."""
        for step in range(10):
            report(Progress(Phase.LOADING, step / 10))
            await asyncio.sleep(self._script.load_s / 10)
        if self._script.fail_load:
            raise ModelLoadError(self._script.fail_load)

    async def generate(self, prompt: Prompt, decoding: Decoding, request_id: str) -> AsyncGenerator[Chunk]:
        """Answer with the segment's reverse, at the script's pace."""
        del request_id
        await self.check()
        prompt_tokens = _tokens(prompt.instruction)
        segment_tokens = _tokens(prompt.segment)
        budget = output_budget(prompt_tokens, segment_tokens, self._script.max_model_len)
        answer = prompt.segment.strip()[::-1]
        length = min(segment_tokens, decoding.max_tokens or budget)
        async with self._place(prompt_tokens + length):
            await asyncio.sleep(self._script.first_token_s)
            self._fail_by_script()
            if decoding.stream:
                for start in range(0, len(answer), CHARS_PER_TOKEN):
                    await asyncio.sleep(self._token_s())
                    yield Chunk(answer[start : start + CHARS_PER_TOKEN])
                answer = ""
            else:
                await asyncio.sleep(self._token_s() * length)
        finish = Finish.STOP if length == segment_tokens else Finish.LENGTH
        yield Chunk(answer[: length * CHARS_PER_TOKEN], finish, prompt_tokens, length)

    async def check(self) -> None:
        """Raise once the script has let the engine die."""
        if self._dead:
            raise EngineDeadError("the engine died, as its script says")

    async def aclose(self, drain_s: float) -> None:
        """Nothing to stop."""
        del drain_s

    def _place(self, tokens: int) -> _Place:
        return _Place(self, tokens)

    def _token_s(self) -> float:
        return self._script.token_s * (1 + self._script.slowdown_ratio * max(0, self._running - 1))

    def _kv_usage_ratio(self) -> float:
        return min(1.0, self._held_tokens / (self._script.max_num_seqs * self._script.max_model_len))

    def _fail_by_script(self) -> None:
        self._generations += 1
        if self._script.die_after and self._generations >= self._script.die_after:
            self._dead = True
            raise EngineDeadError("the engine died, as its script says")
        if self._script.fail_every and self._generations % self._script.fail_every == 0:
            raise GenerationError("this generation failed, as the script says")


class _Place:
    """One sequence's place in the engine, waited for on entry and freed on exit."""

    def __init__(self, engine: ScriptedEngine, tokens: int) -> None:
        self._engine, self._tokens = engine, tokens

    async def __aenter__(self) -> None:
        self._engine._waiting += 1
        try:
            await self._engine._places.acquire()
        finally:
            self._engine._waiting -= 1
        self._engine._running += 1
        self._engine._held_tokens += self._tokens

    async def __aexit__(self, *error: object) -> None:
        self._engine._places.release()
        self._engine._running -= 1
        self._engine._held_tokens -= self._tokens


def _tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)
