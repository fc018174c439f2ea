"""vLLM's AsyncLLM behind the engine protocol.

Written for vLLM 0.32 and 0.33. Source: https://docs.vllm.ai/en/latest/api/vllm/v1/engine/async_llm/
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cache
from typing import Any

from dragoman_protocols.errors import EngineDeadError, GenerationError, OverloadedError
from dragoman_service.engine.protocol import (
    Capacity,
    Chunk,
    Decoding,
    Finish,
    Framing,
    Phase,
    Progress,
    Prompt,
    Report,
    StallDetector,
    TokenCounter,
    output_budget,
)
from dragoman_service.engine.vllm.graphs import capture_rest
from dragoman_service.engine.vllm.process import Runtime, StartCancelledError
from dragoman_service.engine.vllm.tokens import ModelTokenizer
from dragoman_service.errors import StartError
from dragoman_service.settings import Settings

log = logging.getLogger(__name__)

BY_TOKEN = frozenset({"vllm:inter_token_latency_seconds", "vllm:iteration_tokens_total"})
"""vLLM observes these once per message from the engine process, and takes a coalesced output for one step's.
`vllm:request_time_per_output_token_seconds` stays right."""

STEP_REPORTED_S = 10.0
"""Maximum time between the first output and the report of its step, which vLLM makes at the same time."""

SLEEP_LEVEL = 1
"""Keeps the weights in host memory, and drops the KV cache. Level 2 drops the weights too: a wake would read them from
disk or network, which takes longer and can fail."""

TRIAL = Prompt("a", "a", Framing.RAW)

FEW_SEQUENCES = 64
"""vLLM's kernels for `top_k` and `top_p` have a variant for up to so many sequences of a step, and one for more.

Source: `_SPLIT_MAX_BATCH` in `vllm/v1/sample/ops/topk_topp_triton.py`
"""


class AsyncLLMEngine:
    """The protocol of `engine.protocol.Engine`, by vLLM, whose tokenizer is checked against `framing`.

    `cache_settled` is called in a thread, before vLLM's processes start.
    """

    def __init__(
        self, settings: Settings, framing: Framing, cache_settled: Callable[[], None] = lambda: None
    ) -> None:
        self._framing = framing
        self._device = settings.device
        self._runtime = Runtime(settings, framing, self._stepped, cache_settled)
        self._tokens: ModelTokenizer
        self._max_model_len = 0
        self._by_priority = False
        self._capacity = Capacity(0, 0)
        self._stall_detector = StallDetector()
        self._has_stepped = asyncio.Event()
        self._is_awake = True
        self._capturing: asyncio.Task[None] | None = None

    async def load(self, report: Report) -> None:
        """Start vLLM and generate once."""
        report(Progress(Phase.RESOLVING))
        try:
            await self._runtime.start(report, self._read_configuration)
            report(Progress(Phase.WARMING_UP))
            await self._generate_once()
            if self._runtime.defers_graphs:
                self._capturing = asyncio.create_task(self._capture_graphs())
        except (StartError, StartCancelledError):
            raise
        except Exception as error:
            raise self._runtime.load_error(error) from error

    @property
    def capacity(self) -> Capacity:
        """As vLLM computed it; nothing until the model is loaded."""
        return self._capacity

    @property
    def stall_detector(self) -> StallDetector:
        """A step is one of vLLM's scheduler."""
        return self._stall_detector

    @property
    def max_model_len(self) -> int:
        """As vLLM computed it; 0 until the model is loaded."""
        return self._max_model_len

    @property
    def hidden_metrics(self) -> frozenset[str]:
        """With output coalescing, those that count tokens per step."""
        return BY_TOKEN if self._runtime.coalesces_outputs else frozenset()

    def count_tokens(self, text: str) -> int:
        """By the model's own tokenizer."""
        return self._tokens.count(text)

    def counter(self) -> TokenCounter | None:
        """With the Rust tokenizer alone; None if there is none."""
        count = self._tokens.counter
        return None if count is None else TokenCounter(self._max_model_len, count)

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
        sampling = sampling_params(decoding, budget, *self._tokens.stops(decoding))
        outputs = self._runtime.llm.generate(
            {"type": "token", "prompt_token_ids": token_ids},
            sampling,
            request_id,
            # vLLM rejects a priority if its policy is first come, first served.
            priority=priority if self._by_priority else 0,
            trace_headers=trace_headers,
        )
        try:
            with self._stall_detector.generation():
                async with aclosing(outputs):
                    async for output in outputs:
                        yield chunk(
                            output, len(token_ids), None if sampling.detokenize else self._tokens.decode
                        )
        except VLLMDeadError as error:
            # The cause is for the pod's log, and its termination log (`check`).
            raise EngineDeadError("the engine failed; its pod is about to be restarted") from error
        except GenerationError:
            raise
        except Exception as error:
            raise _translated(error) from error

    async def sleep(self) -> None:
        """Move the weights to host memory, and free the KV cache."""
        self._is_awake = False
        await self._runtime.llm.sleep(SLEEP_LEVEL)

    async def wake_up(self) -> None:
        """Move the weights back, and allocate the KV cache.

        Raises:
            RuntimeError: vLLM reports that it still sleeps.
        """
        # Releases that do not report it return None.
        if await self._runtime.llm.wake_up() is False:
            raise RuntimeError("vLLM still sleeps")
        self._is_awake = True

    async def check(self) -> None:
        """Raise EngineDeadError once vLLM's engine process has exited."""
        if self._runtime.llm is not None and self._runtime.llm.errored:
            raise self._runtime.death()

    async def aclose(self) -> None:
        """Stop vLLM and wait for its processes to end."""
        if self._capturing is not None:
            self._capturing.cancel()
        await self._runtime.cancel_start()
        await self._runtime.stop()

    async def _generate_once(self) -> None:
        """Generate before the first request: what a model cannot do on this device shows in its first step.

        Raises:
            StartError: vLLM reported no step, on which the stall detector depends.
        """

        async def generated(decoding: Decoding, number: int) -> None:
            async with aclosing(self.generate(TRIAL, decoding, f"trial-{number}")) as chunks:
                async for _ in chunks:
                    pass

        for batch in trials(self._device, self._capacity.sequences):
            await asyncio.gather(*(generated(decoding, number) for number, decoding in enumerate(batch)))
        try:
            async with asyncio.timeout(STEP_REPORTED_S):
                await self._has_stepped.wait()
        except TimeoutError:
            raise StartError(
                "this release of vLLM does not report its steps (StatLoggerBase.record), which dragoman needs: use an "
                "image with release 0.32 or 0.33"
            ) from None

    async def _capture_graphs(self) -> None:
        """Capture the CUDA graphs that were deferred."""

        async def capture_next() -> int:
            left: list[int] = await self._runtime.llm.collective_rpc("capture_next_graphs")
            return max(left)

        try:
            await capture_rest(capture_next, lambda: self._stall_detector.generating, lambda: self._is_awake)
        except Exception:
            # `check` reports an engine that has exited.
            log.warning("the deferred CUDA graphs are not captured", exc_info=True)

    def _read_configuration(self) -> None:
        config = self._runtime.llm.vllm_config
        self._capacity = _capacity(config)
        self._max_model_len = config.model_config.max_model_len
        self._by_priority = config.scheduler_config.policy == "priority"
        self._tokens = ModelTokenizer(self._runtime.llm.get_tokenizer())
        self._tokens.check(self._framing)

    def _stepped(self) -> None:
        self._has_stepped.set()
        self._stall_detector.step()


def trials(device: str, sequences: int) -> list[list[Decoding]]:
    """Generations before the first request, those of a list at once.

    On a GPU, vLLM compiles its kernels for `top_k` and `top_p` in the first step that samples: with vLLM 0.32 on an
    H200, all requests of the pod wait for about 2 s. Segments that fail a check are sampled.

    Args:
        device: cuda or cpu.
        sequences: Maximum number that run at once.
    """
    greedy = Decoding(max_tokens=1)
    if device != "cuda":
        return [[greedy]]
    sampled = replace(greedy, temperature=0.5, top_p=0.9, top_k=50)
    # Where all sequences of a step are sampled, vLLM may use FlashInfer instead.
    return [[greedy], [greedy, sampled], [greedy, *[sampled] * min(sequences, 2 * FEW_SEQUENCES)]]


def _capacity(config: Any) -> Capacity:
    """What vLLM runs at once: its sequences, and no more tokens than its KV cache holds."""
    sequences = config.scheduler_config.max_num_seqs
    cache = config.cache_config
    cached = getattr(cache, "kv_cache_size_tokens", None)
    longest = sequences * config.model_config.max_model_len
    return Capacity(sequences, min(cached, longest) if cached else longest)


def _translated(error: Exception) -> Exception:
    # Releases that refuse on overload raise an error that carries 503 (0.29 and later).
    if getattr(error, "http_status", None) == 503:
        return OverloadedError("the engine's queue is full")
    return GenerationError(f"the engine failed on this request: {type(error).__name__}")


def chunk(output: Any, prompt_tokens: int, decode: Callable[[Sequence[int]], str] | None) -> Chunk:
    """A chunk from one of vLLM's outputs.

    Args:
        output: A `RequestOutput`, with one completion.
        prompt_tokens: Of its prompt.
        decode: Turns token ids into text if vLLM does not (`detokenize=False`), in which case there are no stop
            strings and the output comes at once; None if vLLM does.

    Raises:
        GenerationError: vLLM ended the generation without an answer.
    """
    completion = output.outputs[0]
    if completion.finish_reason is None:
        return Chunk(completion.text)
    if completion.finish_reason not in tuple(Finish):
        raise GenerationError(f"the engine ended the generation: {completion.finish_reason}")
    finish = Finish(completion.finish_reason)
    text = completion.text if decode is None else _decoded(completion.token_ids, finish, decode)
    return Chunk(text, finish, prompt_tokens, len(completion.token_ids))


def _decoded(token_ids: Sequence[int], finish: Finish, decode: Callable[[Sequence[int]], str]) -> str:
    if finish is Finish.STOP:
        # The last token ended it, and is no text.
        return decode(token_ids[:-1])
    # A character of several tokens may have been cut in two.
    return decode(token_ids).rstrip("\ufffd")


def sampling_params(
    decoding: Decoding, max_tokens: int, stop: Collection[str], stop_token_ids: Collection[int]
) -> Any:
    """vLLM's `SamplingParams`.

    Args:
        decoding: Of the request.
        max_tokens: Maximum length of the output.
        stop: Strings that end the output and are no single token.
        stop_token_ids: ModelTokenizer that end it.
    """
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    made = SamplingParams(
        temperature=decoding.temperature,
        top_p=decoding.top_p,
        top_k=decoding.top_k,
        repetition_penalty=decoding.repetition_penalty,
        stop=list(stop),
        stop_token_ids=list(stop_token_ids),
        max_tokens=max_tokens,
        # Stop strings and streams need the text at each token. Otherwise it is decoded once, from all of them, in a
        # fraction of the event loop's time.
        detokenize=decoding.stream or bool(stop),
        seed=decoding.seed,
        presence_penalty=decoding.presence_penalty,
        frequency_penalty=decoding.frequency_penalty,
        output_kind=RequestOutputKind.DELTA if decoding.stream else RequestOutputKind.FINAL_ONLY,
        **(_repetition_detection() if decoding.stop_on_repetition else {}),
    )
    if hasattr(made, "skip_clone"):
        # These are of one request; vLLM would copy them deeply, which takes longer than all else that it does here.
        made.skip_clone = True
    return made


@cache
def _repetition_detection() -> dict[str, Any]:
    """Parameters that end loops in the engine; none in releases before 0.20.

    Six times the same 12 tokens, which finds loops of 1, 2, 3, 4 and 6 tokens too. Shorter runs stand in texts
    ("ha ha ha"); and vLLM's scheduler, in the engine's one thread, searches each length of pattern at each token: with
    512 sequences five lengths took 5% of that thread. The guards find loops of other lengths in the answer.
    """
    from vllm import sampling_params

    detection = getattr(sampling_params, "RepetitionDetectionParams", None)
    if detection is None:
        return {}
    return {"repetition_detection": detection(max_pattern_size=12, min_pattern_size=12, min_count=6)}
