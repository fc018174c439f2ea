"""Tencent Hunyuan-MT-7B; its licence excludes the EU, the UK and South Korea.

Source: https://huggingface.co/tencent/Hunyuan-MT-7B, model card.
"""

from dataclasses import replace

from dragoman_service.engine.protocol import Decoding
from dragoman_service.prompts.family import PromptFamily

ONLY_TRANSLATION = "Translate the following segment into {target}, without additional explanation.\n\n{text}"

SAMPLING = Decoding(temperature=0.7, top_p=0.6, top_k=20, repetition_penalty=1.05)

NAMES = {
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

FAMILY = PromptFamily(
    name="hunyuan-mt",
    template=ONLY_TRANSLATION,
    chinese_template="把下面的文本翻译成{target}，不要额外解释。\n\n{text}",
    names=NAMES,
    # 127960 is the end of a turn in Hunyuan's tokenizer, which its generation config does not always name.
    decoding=replace(SAMPLING, stop_token_ids=(127960,)),
)
