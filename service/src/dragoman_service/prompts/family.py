"""The shape of a prompt family, and how a text is put into its words."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from dragoman_service.engine.protocol import Decoding, Framing, Prompt
from dragoman_service.languages import Pair

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""What stands for a value in a template; every other brace is text."""


@dataclass(frozen=True)
class PromptFamily:
    """How one family of models wants to be asked.

    Args:
        name: As in `dragoman_contract.prompts.PROMPT_FAMILIES`.
        template: The user's text, with placeholders of `placeholders`.
        chinese_template: Used instead where source or target is Chinese, with languages named in Chinese.
        decoding: The publisher's sampling and stops.
        framing: Whether the tokenizer's chat template goes around it.
        template_args: Variables for that chat template.
        trim: Whether whitespace around the text is left out of the prompt.
    """

    name: str
    template: str
    chinese_template: str | None = None
    decoding: Decoding = field(default_factory=Decoding)
    framing: Framing = Framing.CHAT
    template_args: dict[str, Any] = field(default_factory=dict)
    trim: bool = False

    def prompt(self, text: str, pair: Pair) -> Prompt:
        """Put a text into this family's words.

        Args:
            text: One segment, not empty.
            pair: Its language and the one it becomes.
        """
        segment = text.strip() if self.trim else text
        chinese = pair.source.is_chinese or pair.target.is_chinese
        template = self.chinese_template if chinese and self.chinese_template else self.template
        values = placeholders(segment, pair, named_in_chinese=template is self.chinese_template)
        return Prompt(fill(template, values), segment, self.framing, self.template_args)


def placeholders(text: str, pair: Pair, *, named_in_chinese: bool = False) -> dict[str, str]:
    """What a template's placeholders stand for.

    Args:
        text: The segment.
        pair: Its languages.
        named_in_chinese: Whether languages are named in Chinese rather than in English.
    """
    source, target = pair.source, pair.target
    return {
        "text": text,
        "source": source.chinese if named_in_chinese else source.english,
        "target": target.chinese if named_in_chinese else target.english,
        "source_code": source.tag,
        "target_code": target.tag,
        "source_subtag": source.code,
        "target_subtag": target.code,
    }


def fill(template: str, values: dict[str, str]) -> str:
    """Replace a template's placeholders in one pass, so that braces within values stay what they are.

    Raises:
        KeyError: A placeholder has no value.
    """
    return PLACEHOLDER.sub(lambda match: values[match[1]], template)
