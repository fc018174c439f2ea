"""AsyncLLM and one request on it: what B3 and the bare engine share."""

from __future__ import annotations

import uuid
from typing import Any

from vllm import AsyncEngineArgs, SamplingParams
from vllm.inputs import TokensPrompt
from vllm.sampling_params import RequestOutputKind
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM

from dragoman_bench.arms.options import ArmOptions
from dragoman_bench.prompting import Prompting
from dragoman_tune.requests import Request


class AsyncEngine:
    """AsyncLLM within this process's event loop."""

    def __init__(self, options: ArmOptions) -> None:
        arguments = AsyncEngineArgs(**options.engine_arguments)
        self._llm: Any = AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.OPENAI_API_SERVER)
        length = self._llm.model_config.max_model_len
        self._prompting = Prompting(self._llm.get_tokenizer(), options.template, length)

    async def translate(self, request: Request) -> str:
        """Translate one text; cancelling it aborts the generation."""
        ids, room = self._prompting.encoded(request)
        sampling = SamplingParams(temperature=0.0, max_tokens=room, output_kind=RequestOutputKind.FINAL_ONLY)
        text = ""
        async for output in self._llm.generate(
            TokensPrompt(prompt_token_ids=ids), sampling, request_id=uuid.uuid4().hex
        ):
            text = output.outputs[0].text
        return text.strip()

    def close(self) -> None:
        """End vLLM's processes."""
        self._llm.shutdown()
