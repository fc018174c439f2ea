"""vLLM schedulers that start requests together, send non-streaming outputs once, and allocate slots faster.

vLLM's engine process sends its API process each token of each request, which that process unpacks and counts. For
non-streaming requests that is most of the traffic between the two: at 512 sequences some 30,000 outputs a second. It
also sends statistics after each step, several hundred times a second.

This module is loaded in vLLM's engine process. Written for vLLM 0.32 and 0.33.

Source: `Scheduler.schedule` and `update_from_output`,
https://docs.vllm.ai/en/latest/api/vllm/v1/core/sched/scheduler/
"""

from __future__ import annotations

import time
from typing import Any

from vllm.sampling_params import RequestOutputKind
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from dragoman_service.engine.vllm import open_blocks
from dragoman_service.engine.vllm.coalescing import TokenBuffer
from dragoman_service.engine.vllm.prefill_batching import PrefillDelay, PrefillGate

STATISTICS_S = 0.05
"""Minimum time between two messages of statistics while requests run. Metrics are read every few seconds."""


class _SlotShortcut(Scheduler):  # type: ignore[misc]
    """Allocates KV cache slots by the shortcut of `open_blocks`, where the model allows it."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        block_size = open_blocks.block_size_of(self)
        if block_size is not None:
            manager = self.kv_cache_manager
            manager.allocate_slots = open_blocks.with_shortcut(
                manager.allocate_slots, manager.empty_kv_cache_blocks, block_size
            )


class _Gated(_SlotShortcut):
    """Starts requests where a `PrefillGate` lets them.

    vLLM itself uses the argument `prefill_schedule_interval` for data parallelism only.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._gate = PrefillGate(self.scheduler_config.prefill_schedule_interval)
        self._delay = PrefillDelay()

    def schedule(self, throttle_prefills: bool = False) -> Any:
        began_s, running = time.monotonic(), len(self.running)
        startable = min(len(self.waiting), self.max_num_running_reqs - running)
        held = self._gate.holds(startable, running, self._delay.steps)
        # The argument would also stop a prefill that has begun.
        if held and not any(request.is_prefill_chunk for request in self.running):
            throttle_prefills = True
            # Otherwise vLLM ignores the argument while requests wait for a slot.
            self.prefill_capacity_bound = False
        step = super().schedule(throttle_prefills)
        # Each sequence that is not prefilled has one token. With speculative decoding it has more: then each step looks
        # like one with a prefill, and the delay stays the lowest.
        prompt_tokens = step.total_num_scheduled_tokens - len(step.num_scheduled_tokens)
        self._delay.observe(began_s, prompt_tokens, running)
        return step


class _Coalescing(_Gated):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._buffer = TokenBuffer(self._is_bufferable)
        self._statistics_due_s = 0.0

    def update_from_output(self, *args: Any, **more: Any) -> Any:
        messages = super().update_from_output(*args, **more)
        for message in messages.values():
            message.outputs = self._buffer.forwarded(message.outputs)
        return {client: message for client, message in messages.items() if _has_content(message)}

    def make_stats(self, *of_step: Any, **more_of_step: Any) -> Any:
        """Statistics of the scheduler; None where they are not due.

        Those that are of this step alone are sent at once. The scheduler keeps the others, which are counts since the
        last call and current values. After the last request they are always sent, so that the gauges return to 0.
        """
        now_s = time.monotonic()
        is_last = not self.running and not self.waiting
        is_of_step = any(each is not None for each in (*of_step, *more_of_step.values()))
        if now_s < self._statistics_due_s and not is_last and not is_of_step:
            return None
        self._statistics_due_s = now_s + STATISTICS_S
        return super().make_stats(*of_step, **more_of_step)

    def finish_requests(self, *args: Any, **more: Any) -> Any:
        finished = super().finish_requests(*args, **more)
        self._buffer.keep(self.requests)
        return finished

    def _is_bufferable(self, request_id: str) -> bool:
        """Whether the request is not streamed and has no stop strings, which need the text at each token."""
        request = self.requests.get(request_id)
        sampling = request and request.sampling_params
        return bool(
            sampling
            and sampling.output_kind == RequestOutputKind.FINAL_ONLY
            and not sampling.detokenize
            and sampling.logprobs is None
            and sampling.prompt_logprobs is None
        )


def _has_content(message: Any) -> bool:
    return bool(message.outputs or message.scheduler_stats or message.finished_requests)


class GatedScheduler(_Gated):
    """Replaces vLLM's `Scheduler`, without output coalescing."""


class GatedAsyncScheduler(_Gated, AsyncScheduler):  # type: ignore[misc]
    """Replaces vLLM's `AsyncScheduler`, without output coalescing."""


class CoalescingScheduler(_Coalescing):
    """Replaces vLLM's `Scheduler`."""


class CoalescingAsyncScheduler(_Coalescing, AsyncScheduler):  # type: ignore[misc]
    """Replaces vLLM's `AsyncScheduler`."""


SUCCESSORS = {
    (Scheduler, False): GatedScheduler,
    (AsyncScheduler, False): GatedAsyncScheduler,
    (Scheduler, True): CoalescingScheduler,
    (AsyncScheduler, True): CoalescingAsyncScheduler,
}


def successor(scheduler: type[Any], *, coalesces: bool) -> str | None:
    """Qualified name of the scheduler that replaces one of vLLM's; None if that is unknown.

    Args:
        scheduler: The class that vLLM would use.
        coalesces: Whether it coalesces outputs.
    """
    found = SUCCESSORS.get((scheduler, coalesces))
    return None if found is None else f"{found.__module__}.{found.__qualname__}"
