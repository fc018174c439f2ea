"""Google TranslateGemma (4B, 12B, 27B), made for 2 k tokens of input.

Its own chat template takes no plain text, only one part with language codes, and then writes these words:
they are written here, in Gemma 3's turns, so that they do not depend on how a release passes such parts on.

Source: https://huggingface.co/google/translategemma-4b-it, model card; https://arxiv.org/abs/2601.09012.
"""

from dragoman_service.engine.protocol import Decoding, Framing
from dragoman_service.prompts.family import PromptFamily

MAX_PROMPT_TOKENS = 2048

FAMILY = PromptFamily(
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
    decoding=Decoding(stop=("<end_of_turn>",), max_prompt_tokens=MAX_PROMPT_TOKENS),
    framing=Framing.RAW,
    trim=True,
)
