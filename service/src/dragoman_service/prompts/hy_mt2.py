"""Tencent Hy-MT2 (1.8B, 7B, 30B-A3B), Apache-2.0. Its prompt is in English for every pair.

Source: https://github.com/Tencent-Hunyuan/Hy-MT2, README, "Translation Task Instruction Examples".
"""

from dataclasses import replace

from dragoman_service.prompts.family import OptionTemplates, PromptFamily
from dragoman_service.prompts.hunyuan_mt import NAMES, SAMPLING

MAX_PROMPT_TOKENS = 4096
"""The publisher's own service takes 4 k tokens in and gives 4 k out."""

FAMILY = PromptFamily(
    name="hy-mt2",
    template=(
        "Translate the following text into {target}. Note that you should only output the translated result "
        "without any additional explanation:\n\n{text}"
    ),
    decoding=replace(SAMPLING, max_prompt_tokens=MAX_PROMPT_TOKENS),
    names=NAMES,
    segment_tokens=1024,
    option_templates=OptionTemplates(
        terms="Reference the following translations:\n{terms}\n",
        term="{term} translates to {translation}\n",
        context="[Background Information]\n{context}\n\n",
        with_context=(
            "Please translate the following text into {target}, taking the provided background information "
            "into consideration.\n\n[Source Text]\n{text}"
        ),
        with_tone=(
            "Please translate the following text into {target}. Note that the translation style must strictly "
            "conform to [{style}]:\n\n{text}"
        ),
        with_instructions=(
            "[Source Text]\n{text}\n\n[Translation Tasks]\n{instructions}"
            "{last}. Translate the [Source Text] into {target}."
        ),
        instruction="{number}. {instruction}\n",
    ),
)
