"""Prompt format of a model family: its template, its sampling, and the options that it supports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dragoman_protocols.languages import Language, Pair
from dragoman_service.engine.protocol import Decoding, Framing, Prompt


class Option(StrEnum):
    """An option of a translation, as error messages name it."""

    GLOSSARY = "a glossary"
    CONTEXT = "context"
    FORMALITY = "formality"
    INSTRUCTIONS = "instructions"


class Tone(StrEnum):
    """How a translation addresses its reader."""

    FORMAL = "formal"
    INFORMAL = "informal"


CHINESE_TONES = {Tone.FORMAL: "正式", Tone.INFORMAL: "非正式、口语化"}


@dataclass(frozen=True)
class PromptOptions:
    """Options of a translation, as a prompt states them.

    Args:
        terms: Each a term and its translation.
        context: Text that helps to understand and is not translated.
        tone: None: the model's choice.
        instructions: The client's, in words.
    """

    terms: tuple[tuple[str, str], ...] = ()
    context: str = ""
    tone: Tone | None = None
    instructions: tuple[str, ...] = ()


NO_OPTIONS = PromptOptions()


@dataclass(frozen=True)
class OptionTemplates:
    """Prompt templates of a family's options; empty for an option that it does not support.

    Args:
        terms: Goes before the rest; `{terms}` is a line a term.
        term: Such a line, with `{term}` and `{translation}`.
        context: Goes before all; `{context}`.
        with_context: Replaces the family's own template if there is a context; empty: does not.
        with_tone: Replaces the family's own template if the tone is the only option; `{style}`.
        with_instructions: Replaces the family's own template if there are instructions, or a tone and
            `with_tone` is empty; `{instructions}` are lines, `{last}` the number after them.
        instruction: Such a line, with `{number}` and `{instruction}`.
        tone: A tone as an instruction, with `{style}`.
    """

    terms: str = ""
    term: str = "{term} → {translation}\n"
    context: str = ""
    with_context: str = ""
    with_tone: str = ""
    with_instructions: str = ""
    instruction: str = "- {instruction}\n"
    tone: str = "Use {style} language."

    def unsupported(self, options: PromptOptions) -> Iterator[Option]:
        """The options that have no template."""
        if options.terms and not self.terms:
            yield Option.GLOSSARY
        if options.context and not self.context:
            yield Option.CONTEXT
        if options.tone and not (self.with_tone or self.with_instructions):
            yield Option.FORMALITY
        if options.instructions and not self.with_instructions:
            yield Option.INSTRUCTIONS

    def main(self, template: str, options: PromptOptions) -> str:
        """The template of the translation itself."""
        if options.instructions or (options.tone and not self.with_tone):
            return self.with_instructions
        if options.tone:
            return self.with_tone
        return (options.context and self.with_context) or template


UNSUPPORTED = OptionTemplates()
"""Templates of a family without options."""


def instructions_before(template: str) -> OptionTemplates:
    """Options as plain sentences before a template, for any instruction-tuned chat model."""
    return OptionTemplates(
        terms="Use these translations of terms:\n{terms}\n",
        context="Context, not to be translated:\n{context}\n\n",
        with_instructions="Follow these instructions for the translation:\n{instructions}\n" + template,
    )


PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""What stands for a value in a template; every other brace is text."""

QUOTED = frozenset({"text", "terms", "context", "instructions"})
"""Placeholders that stand for callers' words."""


@dataclass(frozen=True)
class PromptFamily:
    """Prompt format of one family of models.

    Args:
        name: As in `dragoman_contract.models.PROMPT_FAMILIES`.
        template: The user's text, with placeholders of `placeholders`.
        chinese_template: Used instead where source or target is Chinese, with languages named in Chinese.
        decoding: The publisher's sampling and stops.
        framing: Whether the tokenizer's chat template goes around it.
        template_args: Variables for that chat template.
        trim: Whether whitespace around the text is left out of the prompt.
        option_templates: Templates of a glossary, a tone, a context, instructions.
        chinese_option_templates: The same in Chinese; also for other pairs if `option_templates` lacks the option.
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
    option_templates: OptionTemplates = UNSUPPORTED
    chinese_option_templates: OptionTemplates = UNSUPPORTED
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    by_sentence: bool = False
    segment_tokens: int = 512

    def prompt(self, text: str, pair: Pair, options: PromptOptions = NO_OPTIONS) -> Prompt:
        """The prompt for one segment, not empty, with options that `unsupported` does not name."""
        segment = text.strip() if self.trim else text
        in_chinese = self._in_chinese(pair, options)
        template = (self.chinese_template if in_chinese else None) or self.template
        values = self._values(segment, pair, in_chinese)
        if options is not NO_OPTIONS:
            option_templates = self.chinese_option_templates if in_chinese else self.option_templates
            template = _template_with_options(template, option_templates, options)
            values |= _option_values(options, option_templates, in_chinese)
        instruction, quoted = filled(template, values, QUOTED)
        return Prompt(instruction, segment, self.framing, self.template_args, (), quoted)

    def unsupported(self, pair: Pair, options: PromptOptions) -> tuple[Option, ...]:
        """The options that this family has no template for."""
        option_templates = (
            self.chinese_option_templates if self._in_chinese(pair, options) else self.option_templates
        )
        return tuple(option_templates.unsupported(options))

    def carries_context(self, pair: Pair) -> bool:
        """Whether the publisher has a template for a segment that continues another."""
        option_templates = (
            self.chinese_option_templates if self._in_chinese(pair, NO_OPTIONS) else self.option_templates
        )
        return bool(option_templates.with_context)

    def _in_chinese(self, pair: Pair, options: PromptOptions) -> bool:
        if self.chinese_template is None:
            return False
        usual = pair.source.is_chinese or pair.target.is_chinese
        first, other = (
            (self.chinese_option_templates, self.option_templates)
            if usual
            else (self.option_templates, self.chinese_option_templates)
        )
        better = len([*other.unsupported(options)]) < len([*first.unsupported(options)])
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


def _template_with_options(template: str, option_templates: OptionTemplates, options: PromptOptions) -> str:
    """The complete template, before it is filled."""
    return (
        (option_templates.context if options.context else "")
        + (option_templates.terms if options.terms else "")
        + option_templates.main(template, options)
    )


def _option_values(
    options: PromptOptions, option_templates: OptionTemplates, in_chinese: bool
) -> dict[str, str]:
    """The values of the placeholders of options."""
    style = (CHINESE_TONES[options.tone] if in_chinese else options.tone.value) if options.tone else ""
    instructions = [*options.instructions]
    if options.tone and option_templates.main("", options) == option_templates.with_instructions:
        instructions.insert(0, fill(option_templates.tone, {"style": style}))
    return {
        "terms": "".join(
            fill(option_templates.term, {"term": term, "translation": translation})
            for term, translation in options.terms
        ),
        "context": options.context,
        "style": style,
        "instructions": "".join(
            fill(
                option_templates.instruction,
                {"number": str(number), "instruction": " ".join(instruction.split())},
            )
            for number, instruction in enumerate(instructions, 1)
        ),
        "last": str(len(instructions) + 1),
    }


def placeholders(text: str, pair: Pair, *, named_in_chinese: bool = False) -> dict[str, str]:
    """The values of a template's placeholders."""
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
