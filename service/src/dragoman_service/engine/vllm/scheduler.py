"""vLLM's schedulers, telling of an answer that nobody streams when it begins and when it is whole.

vLLM's engine process sends its API process each token of each request, which that process unpacks, counts and keeps.
Where only the whole answer is wanted, that is most of what the two say to each other: at 512 sequences some 30,000
messages a second.

This module is loaded in vLLM's engine process. Written for vLLM 0.26 to 0.32.

Source: `Scheduler.update_from_output`, https://docs.vllm.ai/en/latest/api/vllm/v1/core/sched/scheduler/
"""

from __future__ import annotations

from typing import Any

from vllm.sampling_params import RequestOutputKind
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler

from dragoman_service.engine.vllm.coalescing import HeldTokens


class _WholeAnswers(Scheduler):  # type: ignore[misc]
    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._held = HeldTokens(self._holdable)

    def update_from_output(self, *args: Any, **more: Any) -> Any:
        outputs = super().update_from_output(*args, **more)
        for of_client in outputs.values():
            of_client.outputs = self._held.passed_on(of_client.outputs)
        return outputs

    def finish_requests(self, *args: Any, **more: Any) -> Any:
        finished = super().finish_requests(*args, **more)
        self._held.keep(self.requests)
        return finished

    def _holdable(self, request_id: str) -> bool:
        """Only the whole is wanted, and nobody has to look at each token for a string that ends it."""
        request = self.requests.get(request_id)
        sampling = request and request.sampling_params
        return bool(
            sampling
            and sampling.output_kind == RequestOutputKind.FINAL_ONLY
            and not sampling.detokenize
            and sampling.logprobs is None
            and sampling.prompt_logprobs is None
        )


class WholeAnswersScheduler(_WholeAnswers):
    """In the place of vLLM's `Scheduler`."""


class WholeAnswersAsyncScheduler(_WholeAnswers, AsyncScheduler):  # type: ignore[misc]
    """In the place of vLLM's `AsyncScheduler`."""


SUCCESSORS = {Scheduler: WholeAnswersScheduler, AsyncScheduler: WholeAnswersAsyncScheduler}


def successor(scheduler: type[Any]) -> str | None:
    """The scheduler to use instead, by its qualified name; None where one is not known.

    Args:
        scheduler: The class that vLLM would use.
    """
    found = SUCCESSORS.get(scheduler)
    return None if found is None else f"{found.__module__}.{found.__qualname__}"
