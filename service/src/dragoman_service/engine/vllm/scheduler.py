"""vLLM schedulers that send the output of non-streaming requests once, when it is complete.

vLLM's engine process sends its API process each token of each request, which that process unpacks and counts. For
non-streaming requests that is most of the traffic between the two: at 512 sequences some 30,000 messages a second.

This module is loaded in vLLM's engine process. Written for vLLM 0.26 to 0.32.

Source: `Scheduler.update_from_output`, https://docs.vllm.ai/en/latest/api/vllm/v1/core/sched/scheduler/
"""

from __future__ import annotations

from typing import Any

from vllm.sampling_params import RequestOutputKind
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from dragoman_service.engine.vllm.coalescing import TokenBuffer


class _Coalescing(Scheduler):  # type: ignore[misc]
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


class CoalescingScheduler(_Coalescing):
    """Replaces vLLM's `Scheduler`."""


class CoalescingAsyncScheduler(_Coalescing, AsyncScheduler):  # type: ignore[misc]
    """Replaces vLLM's `AsyncScheduler`."""


SUCCESSORS = {Scheduler: CoalescingScheduler, AsyncScheduler: CoalescingAsyncScheduler}


def successor(scheduler: type[Any]) -> str | None:
    """Qualified name of the coalescing scheduler for one of vLLM's; None if that is unknown."""
    found = SUCCESSORS.get(scheduler)
    return None if found is None else f"{found.__module__}.{found.__qualname__}"
