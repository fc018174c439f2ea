"""The shape of a prompt family, and how a text is put into its words."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman_protocols.languages import Language, Pair
from dragoman_service.engine.protocol import Decoding, Framing, Prompt
from dragoman_service.prompts.wishes import CHINESE_TONES, NONE, UNTOLD, Extras, Wishes

PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""What stands for a value in a template; every other brace is text."""

QUOTED = frozenset({"text", "terms", "context", "instructions"})
"""Placeholders that stand for callers' words."""


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
        extras: How it is told of a glossary, a tone, a context, instructions.
        chinese_extras: The same in Chinese; also for other pairs where `extras` cannot say it.
        names: By tag or primary subtag, the publisher's own name of a language: English, Chinese.
        by_sentence: Whether it was made for single sentences.
        segment_tokens: Longest segment that it translates well.
    """

    name: str
    template: str
    chinese_template: str | None = None
    decoding: Decoding = field(default_factory=Decoding)
    framing: Framing = Framing.CHAT
    template_args: dict[str, Any] = field(default_factory=dict)
    trim: bool = False
    extras: Extras = UNTOLD
    chinese_extras: Extras = UNTOLD
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    by_sentence: bool = False
    segment_tokens: int = 512

    def prompt(self, text: str, pair: Pair, wishes: Wishes = NONE) -> Prompt:
        """Put a text into this family's words.

        Args:
            text: One segment, not empty.
            pair: Its language and the one it becomes.
            wishes: Those that `lacking` does not name.
        """
        segment = text.strip() if self.trim else text
        in_chinese = self._in_chinese(pair, wishes)
        template = (self.chinese_template if in_chinese else None) or self.template
        values = self._values(segment, pair, in_chinese)
        if wishes is not NONE:
            extras = self.chinese_extras if in_chinese else self.extras
            template = _asking(template, extras, wishes)
            values |= _wished(wishes, extras, in_chinese)
        instruction, quoted = filled(template, values, QUOTED)
        return Prompt(instruction, segment, self.framing, self.template_args, (), quoted)

    def lacking(self, pair: Pair, wishes: Wishes) -> tuple[str, ...]:
        """What of the wishes this family cannot be told, in words; nothing if all."""
        extras = self.chinese_extras if self._in_chinese(pair, wishes) else self.extras
        return tuple(extras.lacking(wishes))

    def carries_context(self, pair: Pair) -> bool:
        """Whether the publisher has words for a segment that goes on where another ended."""
        extras = self.chinese_extras if self._in_chinese(pair, NONE) else self.extras
        return bool(extras.with_context)

    def _in_chinese(self, pair: Pair, wishes: Wishes) -> bool:
        if self.chinese_template is None:
            return False
        usual = pair.source.is_chinese or pair.target.is_chinese
        first, other = (self.chinese_extras, self.extras) if usual else (self.extras, self.chinese_extras)
        better = len([*other.lacking(wishes)]) < len([*first.lacking(wishes)])
        return usual != better

    def _values(self, text: str, pair: Pair, in_chinese: bool) -> dict[str, str]:
        values = placeholders(text, pair, named_in_chinese=in_chinese)
        if self.names:
            for place, language in (("source", pair.source), ("target", pair.target)):
                if named := self._named(language):
                    values[place] = named[in_chinese]
        return values

    def _named(self, language: Language) -> tuple[str, str] | None:
        return self.names.get(language.tag) or self.names.get(language.code)


def _asking(template: str, extras: Extras, wishes: Wishes) -> str:
    """All that is said, before it is filled."""
    return (
        (extras.context if wishes.context else "")
        + (extras.terms if wishes.terms else "")
        + extras.main(template, wishes)
    )


def _wished(wishes: Wishes, extras: Extras, in_chinese: bool) -> dict[str, str]:
    """What the placeholders of wishes stand for."""
    style = (CHINESE_TONES[wishes.tone] if in_chinese else wishes.tone.value) if wishes.tone else ""
    instructions = [*wishes.instructions]
    if wishes.tone and extras.main("", wishes) == extras.instructed:
        instructions.insert(0, fill(extras.tone, {"style": style}))
    return {
        "terms": "".join(
            fill(extras.term, {"term": term, "translation": translation})
            for term, translation in wishes.terms
        ),
        "context": wishes.context,
        "style": style,
        "instructions": "".join(
            fill(extras.instruction, {"number": str(number), "instruction": " ".join(instruction.split())})
            for number, instruction in enumerate(instructions, 1)
        ),
        "last": str(len(instructions) + 1),
    }


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


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace a template's placeholders in one pass, so that braces within values stay what they are.

    Raises:
        KeyError: A placeholder has no value.
    """
    return PLACEHOLDER.sub(lambda match: values[match[1]], template)


def filled(
    template: str, values: Mapping[str, str], spans_of: Collection[str]
) -> tuple[str, tuple[tuple[int, int], ...]]:
    """As `fill`, and the spans that the values of `spans_of` take in the result.

    Raises:
        KeyError: A placeholder has no value.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    position = length = 0
    for match in PLACEHOLDER.finditer(template):
        before, value = template[position : match.start()], values[match[1]]
        parts += (before, value)
        length += len(before)
        if match[1] in spans_of:
            spans.append((length, length + len(value)))
        length += len(value)
        position = match.end()
    return "".join([*parts, template[position:]]), tuple(spans)
