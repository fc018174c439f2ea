"""Google Gemma 3, which has no prescribed prompt for translation: the words that LTEngine asks it with.

Source: https://github.com/LibreTranslate/LTEngine (2026-06-18), its prompt for Gemma 3 at temperature 0.
"""

from dragoman_service.engine.protocol import Decoding
from dragoman_service.prompts.family import PromptFamily, instructions_before

TEMPLATE = "Translate the text below from {source} to {target}.\n\n{source}: {text}\n\n{target}:\n"

FAMILY = PromptFamily(
    name="gemma",
    template=TEMPLATE,
    option_templates=instructions_before(TEMPLATE),
    decoding=Decoding(stop=("<end_of_turn>",)),
)
