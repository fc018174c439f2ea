"""vLLM's synchronous engine inside a worker process."""

from __future__ import annotations

from collections.abc import Sequence

from vllm import LLM, SamplingParams
from vllm.inputs import TokensPrompt

from dragoman_bench.arms.options import ArmOptions
from dragoman_bench.prompting import Prompting
from dragoman_tune.requests import Request


class TranslationProcessor:
    """One model, which answers one batch at a time."""

    def __init__(self, options: ArmOptions) -> None:
        self._llm = LLM(**options.engine_arguments)
        length = self._llm.llm_engine.model_config.max_model_len
        self._prompting = Prompting(self._llm.get_tokenizer(), options.template, length)

    def translate_batch(self, requests: Sequence[Request]) -> list[str]:
        """Translate some texts together; all wait for the longest."""
        encoded = [self._prompting.encoded(request) for request in requests]
        outputs = self._llm.generate(
            [TokensPrompt(prompt_token_ids=ids) for ids, _ in encoded],
            [SamplingParams(temperature=0.0, max_tokens=room) for _, room in encoded],
            use_tqdm=False,
        )
        return [output.outputs[0].text.strip() for output in outputs]
