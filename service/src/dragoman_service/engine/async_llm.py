"""vLLM's AsyncLLM behind the engine protocol; the only module that imports vllm.

Written for vLLM 0.26 to 0.32. Imports of vllm are inside functions: they read the environment once, and
take seconds that the HTTP server must not wait for.

Source: https://docs.vllm.ai/en/latest/api/vllm/v1/engine/async_llm/
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import multiprocessing
import os
import tempfile
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from dragoman_service.engine import weights
from dragoman_service.engine.arguments import engine_arguments
from dragoman_service.engine.budget import output_budget
from dragoman_service.engine.child import failure, logging_config, read_report
from dragoman_service.engine.defaults import cpu_arguments, gather_steps, gpu_arguments
from dragoman_service.engine.environment import environment, usable_cpus
from dragoman_service.engine.failure import reason
from dragoman_service.engine.gathering import Gathering
from dragoman_service.engine.outputs import chunk
from dragoman_service.engine.protocol import Capacity, Chunk, Decoding, Framing, Prompt, Report
from dragoman_service.engine.pulse import Pulse
from dragoman_service.engine.threads import in_daemon_thread
from dragoman_service.engine.tokens import Tokens
from dragoman_service.errors import (
    EngineDeadError,
    GenerationError,
    ModelLoadError,
    OverloadedError,
    StartError,
)
from dragoman_service.lifecycle import Phase, Progress
from dragoman_service.settings import Settings

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.25
"""How often the report of vLLM's processes is read while they start."""

STOP_S = 20
"""What a start that is called off gets to notice: an import of vLLM cannot be interrupted."""

TRIAL = Prompt("a", "a", Framing.RAW)


class _CalledOffError(Exception):
    """The pod is told to end while the engine starts."""


class AsyncLLMEngine:
    """The protocol of `engine.protocol.Engine`, by vLLM.

    Args:
        settings: The pod's.
        framing: How the prompt family wants its instructions framed; checked against the tokenizer.
    """

    def __init__(self, settings: Settings, framing: Framing) -> None:
        self._settings = settings
        self._framing = framing
        self._llm: Any = None
        self._tokens: Tokens
        self._max_model_len = 0
        self._by_priority = False
        self._capacity = Capacity(0, 0)
        self._pulse = Pulse()
        self._gathering = Gathering(gather_steps(settings), self._pulse)
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = threading.Event()
        self._starting: asyncio.Task[None] | None = None
        self._scratch = tempfile.TemporaryDirectory(prefix="dragoman-")
        self._report_path = Path(self._scratch.name) / "start.jsonl"

    async def load(self, report: Report) -> None:
        """Start vLLM in a thread, so that the event loop goes on answering probes."""
        report(Progress(Phase.RESOLVING))
        self._starting = asyncio.create_task(in_daemon_thread(lambda: self._start(report)))
        following = asyncio.create_task(self._follow(report))
        try:
            await asyncio.shield(self._starting)
            report(Progress(Phase.WARMING_UP))
            await self._try_out()
        except (StartError, _CalledOffError):
            raise
        except Exception as error:
            _, reported = read_report(self._report_path)
            log.debug("vLLM did not start", exc_info=error)
            raise ModelLoadError(reason(reported or failure(error), self._settings.model)) from error
        finally:
            following.cancel()

    @property
    def capacity(self) -> Capacity:
        """As vLLM settled it; nothing until the model is loaded."""
        return self._capacity

    @property
    def pulse(self) -> Pulse:
        """A step is one of vLLM's scheduler."""
        return self._pulse

    @property
    def max_model_len(self) -> int:
        """As vLLM settled it; 0 until the model is loaded."""
        return self._max_model_len

    def count_tokens(self, text: str) -> int:
        """By the model's own tokenizer."""
        return self._tokens.count(text)

    async def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        request_id: str,
        *,
        priority: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Answer one prompt; vLLM aborts it when the generator is closed."""
        from vllm.v1.engine.exceptions import EngineDeadError as VLLMDeadError

        token_ids, segment_tokens = await self._tokens.encode(prompt)
        budget = output_budget(
            len(token_ids),
            segment_tokens,
            self._max_model_len,
            decoding.max_prompt_tokens,
            decoding.max_tokens,
        )
        sampling = self._sampling(decoding, budget)
        await self._gathering.entered()
        outputs = self._llm.generate(
            {"type": "token", "prompt_token_ids": token_ids},
            sampling,
            request_id,
            # vLLM refuses a priority where it schedules first come, first served.
            priority=priority if self._by_priority else 0,
            trace_headers=trace_headers,
        )
        self._idle.clear()
        try:
            with self._pulse.generation():
                async with aclosing(outputs):
                    async for output in outputs:
                        yield chunk(
                            output, len(token_ids), None if sampling.detokenize else self._tokens.decode
                        )
        except VLLMDeadError as error:
            raise self._death() from error
        except GenerationError:
            raise
        except Exception as error:
            raise _translated(error) from error
        finally:
            if not self._pulse.generating:
                self._gathering.open()
                self._idle.set()

    async def check(self) -> None:
        """Raise EngineDeadError once vLLM's engine process is gone."""
        if self._llm is not None and self._llm.errored:
            raise self._death()

    async def aclose(self, drain_s: float) -> None:
        """Stop vLLM and wait for its processes to end."""
        self._closing.set()
        if self._starting is not None and not self._starting.done():
            await self._call_off(self._starting)
        if self._llm is not None:
            await self._stop(drain_s)
        self._scratch.cleanup()

    async def _try_out(self) -> None:
        """Answer once before anybody asks: what a model cannot do on this device shows in its first step."""
        async with aclosing(self.generate(TRIAL, Decoding(max_tokens=1), "trial")) as chunks:
            async for _ in chunks:
                pass

    def _death(self) -> EngineDeadError:
        _, reported = read_report(self._report_path)
        said = (
            f"{': '.join(reported.chain[0])}" if reported else "it did not say why; it may have been killed"
        )
        return EngineDeadError(f"vLLM's engine process is gone ({said[:300]}); this pod must restart")

    async def _stop(self, drain_s: float) -> None:
        llm, self._llm = self._llm, None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(drain_s):
                await self._idle.wait()
        if llm.output_handler is not None:
            # Or else it logs the end of the engine process as a failure.
            llm.output_handler.cancel()
            await asyncio.gather(llm.output_handler, return_exceptions=True)
        await in_daemon_thread(llm.shutdown)

    def _start(self, report: Report) -> None:
        config_path = Path(self._scratch.name) / "logging.json"
        level = self._settings.log_level.upper()
        config_path.write_text(json.dumps(logging_config(self._report_path, level)), encoding="utf-8")
        os.environ.update(environment(self._settings, config_path, usable_cpus(), os.environ))
        directory = weights.local_directory(self._settings.model)
        arguments = self._arguments()
        self._go_on()
        arguments["model"] = directory or self._fetched(report)
        self._go_on()
        _read_environment_anew()
        # Kept in no local variable: frames of an import can outlive it, and AsyncLLM must be collected
        # before the interpreter ends.
        self._llm = _started(arguments, self._stepped, whole_answers=self._settings.whole_answers)
        self._capacity = _capacity(self._llm.vllm_config)
        self._max_model_len = self._llm.model_config.max_model_len
        self._by_priority = self._llm.vllm_config.scheduler_config.policy == "priority"
        self._tokens = Tokens(self._llm.get_tokenizer())
        self._tokens.check(self._framing)
        _keep_environment()

    def _stepped(self) -> None:
        self._pulse.step()
        self._gathering.step()

    def _arguments(self) -> dict[str, Any]:
        from vllm import AsyncEngineArgs
        from vllm.platforms import current_platform

        settings = self._settings
        if current_platform.device_type != settings.device:
            raise StartError(
                f"device {settings.device} was asked for and vLLM finds "
                f"{current_platform.device_type or 'none'} here: "
                + (
                    "request nvidia.com/gpu and use an image with vLLM for CUDA, or set device: cpu"
                    if settings.device == "cuda"
                    else "use an image with vLLM for CPU, or set device: cuda"
                )
            )
        arguments = engine_arguments(settings, [known.name for known in fields(AsyncEngineArgs)])
        if settings.device == "cpu":
            return cpu_arguments(arguments, os.environ)
        return gpu_arguments(arguments)

    def _fetched(self, report: Report) -> str:
        settings = self._settings
        if weights.is_remote_store(settings.model) or "load_format" in settings.engine_args:
            # Which files there are to fetch is vLLM's to know.
            return settings.model
        found = weights.fetch(
            settings.model, settings.revision, lambda share: report(Progress(Phase.DOWNLOADING, share))
        )
        report(Progress(Phase.LOADING))
        return str(found)

    def _go_on(self) -> None:
        """Give up between two steps once the pod is told to end."""
        if self._closing.is_set():
            raise _CalledOffError

    async def _follow(self, report: Report) -> None:
        last: Phase | None = None
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            phase, _ = read_report(self._report_path)
            if phase is not None and phase is not last:
                report(Progress(phase))
                last = phase

    async def _call_off(self, starting: asyncio.Task[None]) -> None:
        """End a start: vLLM's processes die, upon which its constructor gives up."""
        try:
            async with asyncio.timeout(STOP_S):
                while not starting.done():
                    for child in multiprocessing.active_children():
                        child.terminate()
                    await asyncio.wait((starting,), timeout=LOOK_EVERY_S)
        except TimeoutError:
            log.warning("vLLM's start could not be called off within %d s", STOP_S)

    def _sampling(self, decoding: Decoding, max_tokens: int) -> Any:
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        stop, stop_token_ids = self._tokens.stops(decoding)
        return SamplingParams(
            temperature=decoding.temperature,
            top_p=decoding.top_p,
            top_k=decoding.top_k,
            repetition_penalty=decoding.repetition_penalty,
            stop=list(stop),
            stop_token_ids=list(stop_token_ids),
            max_tokens=max_tokens,
            # Stop strings and streams need the text at each token. Else it is had once, from all of them, for a
            # fraction of the event loop's time.
            detokenize=decoding.stream or bool(stop),
            seed=decoding.seed,
            presence_penalty=decoding.presence_penalty,
            frequency_penalty=decoding.frequency_penalty,
            output_kind=RequestOutputKind.DELTA if decoding.stream else RequestOutputKind.FINAL_ONLY,
            **(_repetition_detection() if decoding.stop_on_repetition else {}),
        )


def _started(arguments: dict[str, Any], stepped: Callable[[], None], *, whole_answers: bool) -> Any:
    """AsyncLLM with its processes up; the defaults are those of vLLM's own API server."""
    from vllm import AsyncEngineArgs
    from vllm.usage.usage_lib import UsageContext
    from vllm.v1.engine.async_llm import AsyncLLM
    from vllm.v1.metrics.loggers import StatLoggerBase

    class Steps(StatLoggerBase):  # type: ignore[misc]
        """Tells of each step; what vLLM hands over beside it may change from release to release."""

        def __init__(self, *_config: Any, **_more: Any) -> None:
            """Nothing to keep."""

        def record(self, *_stats: Any, **_more: Any) -> None:
            """A step is over."""
            stepped()

        def log_engine_initialized(self) -> None:
            """Nothing to say."""

    context = UsageContext.OPENAI_API_SERVER
    config = AsyncEngineArgs(**arguments).create_engine_config(context)
    if whole_answers:
        from dragoman_service.engine.whole_answers import successor

        scheduling = config.scheduler_config
        scheduling.scheduler_cls = successor(scheduling.get_scheduler_cls()) or scheduling.scheduler_cls
    return AsyncLLM.from_vllm_config(config, usage_context=context, stat_loggers=[Steps])


def _keep_environment() -> None:
    """Let vLLM read its environment no more: it does at every token, which took a fifth of this process's time.

    vLLM's own processes do so themselves, its API server does not. Releases without such a cache go on reading.
    """
    from vllm import envs

    getattr(envs, "enable_envs_cache", lambda: None)()


def _read_environment_anew() -> None:
    """Undo `_keep_environment`, for an engine that is started after another in the same process."""
    from vllm import envs

    getattr(envs, "disable_envs_cache", lambda: None)()


def _capacity(config: Any) -> Capacity:
    """What vLLM runs side by side: its sequences, and no more tokens than its KV cache holds."""
    sequences = config.scheduler_config.max_num_seqs
    cache = config.cache_config
    # The first is right for every kind of attention; releases before it have the second.
    held = getattr(cache, "kv_cache_size_tokens", None) or (cache.num_gpu_blocks or 0) * cache.block_size
    longest = sequences * config.model_config.max_model_len
    return Capacity(sequences, min(held, longest) if held else longest)


@cache
def _repetition_detection() -> dict[str, Any]:
    """What ends loops in the engine; nothing in releases that cannot (0.20 and later can).

    Six times the same 12 tokens, which finds loops of 1, 2, 3, 4 and 6 tokens too. Shorter runs stand in texts
    ("ha ha ha"); and vLLM's scheduler, in the engine's one thread, looks for each length of pattern at each token: with
    512 sequences five lengths took 5% of that thread. The guards find loops of other lengths in the answer.
    """
    from vllm import sampling_params

    detection = getattr(sampling_params, "RepetitionDetectionParams", None)
    if detection is None:
        return {}
    return {"repetition_detection": detection(max_pattern_size=12, min_pattern_size=12, min_count=6)}


def _translated(error: Exception) -> Exception:
    # Releases that can refuse for load raise an error that carries 503 (0.29 and later).
    if getattr(error, "http_status", None) == 503:
        return OverloadedError("the engine's queue is full")
    return GenerationError(f"vLLM failed on this request: {type(error).__name__}")
