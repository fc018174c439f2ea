"""ByteDance Seed-X (Instruct, PPO; 7B): no chat template, and the target's code must end the prompt.

Source: https://huggingface.co/ByteDance-Seed/Seed-X-PPO-7B, model card.
"""

from dragoman_service.engine.protocol import Decoding, Framing
from dragoman_service.prompts.family import PromptFamily

FAMILY = PromptFamily(
    name="seed-x",
    template="Translate the following {source} sentence into {target}:\n{text} <{target_subtag}>",
    decoding=Decoding(temperature=0.0),
    framing=Framing.RAW,
    by_sentence=True,
)
