"""For any instruction-tuned chat model, and for the demo model, which was trained on exactly these words."""

from dragoman_service.engine.protocol import Decoding
from dragoman_service.prompts.family import PromptFamily, instructions_before

TEMPLATE = "Translate the following text from {source} into {target}.\n{source}: {text}\n{target}:"

FAMILY = PromptFamily(
    name="chatml-generic",
    template=TEMPLATE,
    option_templates=instructions_before(TEMPLATE),
    decoding=Decoding(stop=("<|im_end|>",)),
    # Models that can think before they answer, such as Qwen3, must not; others ignore it.
    template_args={"enable_thinking": False},
)
