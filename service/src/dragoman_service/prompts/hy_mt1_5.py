"""Tencent HY-MT1.5 (1.8B, 7B); its licence excludes the EU, the UK and South Korea.

Source: https://huggingface.co/tencent/HY-MT1.5-7B, model card.
"""

from dragoman_service.prompts.family import PromptFamily
from dragoman_service.prompts.hunyuan_mt import ONLY_TRANSLATION, SAMPLING

FAMILY = PromptFamily(
    name="hy-mt1.5",
    template=ONLY_TRANSLATION,
    chinese_template="将以下文本翻译为{target}，注意只需要输出翻译后的结果，不要额外解释：\n\n{text}",
    decoding=SAMPLING,
)
