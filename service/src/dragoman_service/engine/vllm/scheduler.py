"""vLLM schedulers that start requests together, and that send the output of non-streaming requests once.

vLLM's engine process sends its API process each token of each request, which that process unpacks and counts. For
non-streaming requests that is most of the traffic between the two: at 512 sequences some 30,000 messages a second.

This module is loaded in vLLM's engine process. Written for vLLM 0.26 to 0.32.

Source: `Scheduler.schedule` and `update_from_output`,
https://docs.vllm.ai/en/latest/api/vllm/v1/core/sched/scheduler/
"""

from __future__ import annotations

from typing import Any

from vllm.sampling_params import RequestOutputKind
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from dragoman_service.engine.vllm.coalescing import TokenBuffer
from dragoman_service.engine.vllm.prefill_gate import PrefillGate


class _Gated(Scheduler):  # type: ignore[misc]
    """Starts requests where a `PrefillGate` lets them.

    vLLM itself uses the argument `prefill_schedule_interval` for data parallelism only.
    """

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._gate = PrefillGate(self.scheduler_config.prefill_schedule_interval)

    def schedule(self, throttle_prefills: bool = False) -> Any:
        slots = self.max_num_running_reqs - len(self.running)
        held = self._gate.holds(min(len(self.waiting), slots), len(self.running))
        # The argument would also stop a prefill that has begun.
        if held and not any(request.is_prefill_chunk for request in self.running):
            throttle_prefills = True
            # Otherwise vLLM ignores the argument while requests wait for a slot.
            self.prefill_capacity_bound = False
        return super().schedule(throttle_prefills)


class _Coalescing(_Gated):
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._buffer = TokenBuffer(self._is_bufferable)

    def update_from_output(self, *args: Any, **more: Any) -> Any:
        outputs = super().update_from_output(*args, **more)
        for of_client in outputs.values():
            of_client.outputs = self._buffer.forwarded(of_client.outputs)
        return outputs

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
