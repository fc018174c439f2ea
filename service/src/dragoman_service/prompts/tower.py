"""Unbabel Tower+ (2B, 9B, 72B; CC-BY-NC-SA) and TowerInstruct (7B, 13B; CC-BY-NC).

Source: https://huggingface.co/Unbabel/Tower-Plus-9B and .../TowerInstruct-7B-v0.2, model cards.
"""

from dragoman_service.engine.protocol import Decoding
from dragoman_service.prompts.family import PromptFamily, instructions_before

PLUS_TEMPLATE = "Translate the following {source} source text to {target}:\n{source}: {text}\n{target}: "

TOWER_PLUS = PromptFamily(
    name="tower-plus",
    template=PLUS_TEMPLATE,
    # Trained to follow instructions in general, beside translation.
    option_templates=instructions_before(PLUS_TEMPLATE),
    decoding=Decoding(stop=("<end_of_turn>", "<|im_end|>", "<|eot_id|>")),
)
"""Its sizes are built on different base models, hence the ends of turn of all of them."""

TOWER_INSTRUCT = PromptFamily(
    name="tower-instruct",
    template="Translate the following text from {source} into {target}.\n{source}: {text}\n{target}:",
    decoding=Decoding(stop=("<|im_end|>",)),
)
