"""B3: AsyncLLM used directly in FastAPI, as the original system used it, on today's vLLM."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from vllm import AsyncEngineArgs, SamplingParams
from vllm.inputs import TokensPrompt
from vllm.sampling_params import RequestOutputKind
from vllm.usage.usage_lib import UsageContext
from vllm.v1.engine.async_llm import AsyncLLM

from dragoman_bench.arms.common import ArmOptions, Translate, Translated, arm_options, serve
from dragoman_bench.prompting import Prompting
from dragoman_tune.requests import SampleRequest


@asynccontextmanager
async def async_llm(options: ArmOptions) -> AsyncIterator[Translate]:
    """AsyncLLM on the event loop that serves; a client that disconnects aborts its generation."""
    arguments = AsyncEngineArgs(**options.engine_arguments)
    llm: Any = AsyncLLM.from_engine_args(arguments, usage_context=UsageContext.OPENAI_API_SERVER)
    prompting = Prompting(llm.get_tokenizer(), options.template, llm.model_config.max_model_len)

    async def translate(request: SampleRequest) -> Translated:
        ids, room = prompting.encoded(request)
        sampling = SamplingParams(temperature=0.0, max_tokens=room, output_kind=RequestOutputKind.FINAL_ONLY)
        text = ""
        prompt = TokensPrompt(prompt_token_ids=ids)
        async for output in llm.generate(prompt, sampling, request_id=uuid.uuid4().hex):
            text = output.outputs[0].text
        return Translated(text.strip())

    yield translate
    llm.shutdown()


if __name__ == "__main__":
    chosen = arm_options()
    serve(chosen.port, lambda: async_llm(chosen))
