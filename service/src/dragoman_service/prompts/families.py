"""The prompt families: prompts and sampling parameters of each family of models.

Strings are the publishers' own; sources and licences are above each family.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from dragoman_contract.models import CUSTOM_FAMILY
from dragoman_service.engine.protocol import Decoding, Framing
from dragoman_service.errors import PromptTemplateError
from dragoman_service.prompts.family import (
    PLACEHOLDER,
    OptionTemplates,
    PromptFamily,
    instructions_before,
)

# For any instruction-tuned chat model, and for the demo model, which was trained on exactly these words.
GENERIC_TEMPLATE = "Translate the following text from {source} into {target}.\n{source}: {text}\n{target}:"
CHATML_GENERIC = PromptFamily(
    name="chatml-generic",
    template=GENERIC_TEMPLATE,
    option_templates=instructions_before(GENERIC_TEMPLATE),
    decoding=Decoding(stop=("<|im_end|>",)),
    # Models that can think before they answer, such as Qwen3, must not; others ignore it.
    template_args={"enable_thinking": False},
)

# Tencent Hunyuan-MT-7B; its licence excludes the EU, the UK and South Korea.
# Source: https://huggingface.co/tencent/Hunyuan-MT-7B, model card.
HUNYUAN_TEMPLATE = "Translate the following segment into {target}, without additional explanation.\n\n{text}"
HUNYUAN_SAMPLING = Decoding(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)
HUNYUAN_NAMES = {
    "zh-Hant": ("Traditional Chinese", "繁体中文"),
    "zh-TW": ("Traditional Chinese", "繁体中文"),
    "zh-HK": ("Traditional Chinese", "繁体中文"),
    "zh": ("Chinese", "中文"),
    "yue": ("Cantonese", "粤语"),
    "fil": ("Filipino", "菲律宾语"),
    "tl": ("Filipino", "菲律宾语"),
    "ms": ("Malay", "马来语"),
    "id": ("Indonesian", "印尼语"),
}
"""The publisher's names of languages where CLDR has others; zh-Hans is plain Chinese."""
HUNYUAN_MT = PromptFamily(
    name="hunyuan-mt",
    template=HUNYUAN_TEMPLATE,
    chinese_template="把下面的文本翻译成{target}，不要额外解释。\n\n{text}",
    names=HUNYUAN_NAMES,
    # 127960 is the end of a turn in Hunyuan's tokenizer, which its generation config does not always name.
    decoding=replace(HUNYUAN_SAMPLING, stop_token_ids=(127960,)),
)

# Tencent HY-MT1.5 (1.8B, 7B); its licence excludes the EU, the UK and South Korea.
# Its words for a glossary and for a context exist in Chinese only, and serve every pair.
# Source: https://huggingface.co/tencent/HY-MT1.5-7B, model card.
HY_MT1_5 = PromptFamily(
    name="hy-mt1.5",
    template=HUNYUAN_TEMPLATE,
    chinese_template="将以下文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释：\n\n{text}",
    decoding=HUNYUAN_SAMPLING,
    names=HUNYUAN_NAMES,
    chinese_option_templates=OptionTemplates(
        terms="参考下面的翻译：\n{terms}\n",
        term="{term} 翻译成 {translation}\n",
        context="{context}\n",
        with_context="参考上面的信息，把下面的文本翻译成{target}，注意不需要翻译上文，也不要额外解释：\n{text}",
    ),
)

# Tencent Hy-MT2 (1.8B, 7B, 30B-A3B), Apache-2.0. Its prompt is in English for every pair.
# Source: https://github.com/Tencent-Hunyuan/Hy-MT2, README, "Translation Task Instruction Examples".
HY_MT2 = PromptFamily(
    name="hy-mt2",
    template=(
        "Translate the following text into {target}. Note that you should only output the translated result "
        "without any additional explanation:\n\n{text}"
    ),
    # The publisher's own service takes 4 k tokens in and gives 4 k out.
    decoding=replace(HUNYUAN_SAMPLING, max_prompt_tokens=4096),
    names=HUNYUAN_NAMES,
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

# ByteDance Seed-X (Instruct, PPO; 7B): no chat template, and the target's code must end the prompt.
# Source: https://huggingface.co/ByteDance-Seed/Seed-X-PPO-7B, model card.
SEED_X = PromptFamily(
    name="seed-x",
    template="Translate the following {source} sentence into {target}:\n{text} <{target_subtag}>",
    framing=Framing.RAW,
    by_sentence=True,
)

# Google TranslateGemma (4B, 12B, 27B), made for 2 k tokens of input.
# Its own chat template takes no plain text, only one part with language codes, and then writes these words:
# they are written here, in Gemma 3's turns, so that they do not depend on how a release passes such parts on.
# Source: https://huggingface.co/google/translategemma-4b-it, model card; https://arxiv.org/abs/2601.09012.
TRANSLATEGEMMA = PromptFamily(
    name="translategemma",
    template=(
        "<start_of_turn>user\n"
        "You are a professional {source} ({source_code}) to {target} ({target_code}) translator. Your goal is "
        "to accurately convey the meaning and nuances of the original {source} text while adhering to "
        "{target} grammar, vocabulary, and cultural sensitivities.\n"
        "Produce only the {target} translation, without any additional explanations or commentary. Please "
        "translate the following {source} text into {target}:\n\n\n{text}"
        "<end_of_turn>\n<start_of_turn>model\n"
    ),
    decoding=Decoding(stop=("<end_of_turn>",), max_prompt_tokens=2048),
    framing=Framing.RAW,
    trim=True,
)

# Unbabel Tower+ (2B, 9B, 72B; CC-BY-NC-SA) and TowerInstruct (7B, 13B; CC-BY-NC).
# Source: https://huggingface.co/Unbabel/Tower-Plus-9B and .../TowerInstruct-7B-v0.2, model cards.
TOWER_PLUS_TEMPLATE = (
    "Translate the following {source} source text to {target}:\n{source}: {text}\n{target}: "
)
TOWER_PLUS = PromptFamily(
    name="tower-plus",
    template=TOWER_PLUS_TEMPLATE,
    # Trained to follow instructions in general, beside translation.
    option_templates=instructions_before(TOWER_PLUS_TEMPLATE),
    # Its sizes are built on different base models, hence the ends of turn of all of them.
    decoding=Decoding(stop=("<end_of_turn>", "<|im_end|>", "<|eot_id|>")),
)
TOWER_INSTRUCT = PromptFamily(
    name="tower-instruct",
    template="Translate the following text from {source} into {target}.\n{source}: {text}\n{target}:",
    decoding=Decoding(stop=("<|im_end|>",)),
)

# ALMA and ALMA-R (7B, 13B): no chat template. The publisher decodes with five beams, which cost a server more than
# they give; greedy decoding stands in for them.
# Source: https://github.com/fe1ixxu/ALMA, README.
ALMA = PromptFamily(
    name="alma",
    template="Translate this from {source} to {target}:\n{source}: {text}\n{target}:",
    framing=Framing.RAW,
    by_sentence=True,
)

# Google Gemma 3, which has no prescribed prompt for translation: the words of LTEngine's prompt, at temperature 0.
# Source: https://github.com/LibreTranslate/LTEngine (2026-06-18).
GEMMA_TEMPLATE = "Translate the text below from {source} to {target}.\n\n{source}: {text}\n\n{target}:\n"
GEMMA = PromptFamily(
    name="gemma",
    template=GEMMA_TEMPLATE,
    option_templates=instructions_before(GEMMA_TEMPLATE),
    decoding=Decoding(stop=("<end_of_turn>",)),
)

FAMILIES = MappingProxyType(
    {
        family.name: family
        for family in (
            *(CHATML_GENERIC, HUNYUAN_MT, HY_MT2, HY_MT1_5, SEED_X, TRANSLATEGEMMA),
            *(TOWER_PLUS, TOWER_INSTRUCT, ALMA, GEMMA),
        )
    }
)
"""Families by name; `custom` is made from its template instead."""

CUSTOM_PLACEHOLDERS = ("text", "source", "target", "source_code", "target_code")


def prompt_family(name: str, template: str | None = None) -> PromptFamily:
    """The family of a name in `PROMPT_FAMILIES`; `template` is that of a custom family.

    Raises:
        PromptTemplateError: No such family, or a template that cannot be used.
    """
    if name == CUSTOM_FAMILY:
        if template is None:
            raise PromptTemplateError("prompt family custom needs a template")
        return custom_family(template)
    if name not in FAMILIES:
        raise PromptTemplateError(
            f"no prompt family {name!r}; there are {', '.join(FAMILIES)}, {CUSTOM_FAMILY}"
        )
    return FAMILIES[name]


def custom_family(template: str) -> PromptFamily:
    """A greedy family whose prompt is `template`, in the tokenizer's chat template if it has one.

    Args:
        template: Text with `{text}` and optionally `{source}`, `{target}` (names in English),
            `{source_code}`, `{target_code}` (BCP-47). Other braces are text.

    Raises:
        PromptTemplateError: `{text}` is missing, or there is a placeholder of another name.
    """
    named = PLACEHOLDER.findall(template)
    unknown = [name for name in dict.fromkeys(named) if name not in CUSTOM_PLACEHOLDERS]
    known = ", ".join(f"{{{name}}}" for name in CUSTOM_PLACEHOLDERS)
    if unknown:
        raise PromptTemplateError(f"the prompt template has {{{unknown[0]}}}; known are {known}")
    if "text" not in named:
        raise PromptTemplateError(f"the prompt template lacks {{text}}; known are {known}")
    return PromptFamily(
        name=CUSTOM_FAMILY,
        template=template,
        framing=Framing.CHAT_IF_ANY,
        option_templates=instructions_before(template),
    )
