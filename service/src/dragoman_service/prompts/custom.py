"""A family from the user's own template."""

from __future__ import annotations

from dragoman_service.engine.protocol import Framing
from dragoman_service.errors import PromptTemplateError
from dragoman_service.prompts.family import PLACEHOLDER, PromptFamily, instructions_before

ALLOWED = ("text", "source", "target", "source_code", "target_code")


def custom_family(template: str) -> PromptFamily:
    """A greedy family whose prompt is `template`, in the tokenizer's chat template if it has one.

    Args:
        template: Text with `{text}` and optionally `{source}`, `{target}` (names in English),
            `{source_code}`, `{target_code}` (BCP-47). Other braces are text.

    Raises:
        PromptTemplateError: `{text}` is missing, or there is a placeholder of another name.
    """
    named = PLACEHOLDER.findall(template)
    unknown = [name for name in dict.fromkeys(named) if name not in ALLOWED]
    known = ", ".join(f"{{{name}}}" for name in ALLOWED)
    if unknown:
        raise PromptTemplateError(f"the prompt template has {{{unknown[0]}}}; known are {known}")
    if "text" not in named:
        raise PromptTemplateError(f"the prompt template lacks {{text}}; known are {known}")
    return PromptFamily(
        name="custom",
        template=template,
        framing=Framing.CHAT_IF_ANY,
        option_templates=instructions_before(template),
    )
