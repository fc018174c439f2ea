"""Tencent Hy-MT2 (1.8B, 7B, 30B-A3B), Apache-2.0. It is asked in English for every pair.

Source: https://huggingface.co/tencent/Hy-MT2-7B, model card.
"""

from dataclasses import replace

from dragoman_service.prompts.family import PromptFamily
from dragoman_service.prompts.hunyuan_mt import SAMPLING

MAX_PROMPT_TOKENS = 4096
"""The publisher's own service takes 4 k tokens in and gives 4 k out."""

FAMILY = PromptFamily(
    name="hy-mt2",
    template=(
        "Translate the following text into {target}. Note that you should only output the translated result "
        "without any additional explanation:\n\n{text}"
    ),
    decoding=replace(SAMPLING, max_prompt_tokens=MAX_PROMPT_TOKENS),
)
