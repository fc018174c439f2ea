"""Tencent HY-MT1.5 (1.8B, 7B); its licence excludes the EU, the UK and South Korea.

Its words for a glossary and for a context exist in Chinese only, and serve every pair.

Source: https://huggingface.co/tencent/HY-MT1.5-7B, model card.
"""

from dragoman_service.prompts.family import OptionTemplates, PromptFamily
from dragoman_service.prompts.hunyuan_mt import NAMES, ONLY_TRANSLATION, SAMPLING

FAMILY = PromptFamily(
    name="hy-mt1.5",
    template=ONLY_TRANSLATION,
    chinese_template="将以下文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释：\n\n{text}",
    decoding=SAMPLING,
    names=NAMES,
    chinese_option_templates=OptionTemplates(
        terms="参考下面的翻译：\n{terms}\n",
        term="{term} 翻译成 {translation}\n",
        context="{context}\n",
        with_context="参考上面的信息，把下面的文本翻译成{target}，注意不需要翻译上文，也不要额外解释：\n{text}",
    ),
)
