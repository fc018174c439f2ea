"""ALMA and ALMA-R (7B, 13B): no chat template.

The publisher decodes with five beams, which cost a server more than they give; greedy decoding stands in for them.

Source: https://github.com/fe1ixxu/ALMA, README.
"""

from dragoman_service.engine.protocol import Framing
from dragoman_service.prompts.family import PromptFamily

FAMILY = PromptFamily(
    name="alma",
    template="Translate this from {source} to {target}:\n{source}: {text}\n{target}:",
    framing=Framing.RAW,
    by_sentence=True,
)
