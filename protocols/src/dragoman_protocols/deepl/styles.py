"""DeepL's lists of style rules, `/v3/style_rules`, as values and as JSON; pure.

They are kept in the store of glossaries, as glossaries without dictionaries.
Source: https://developers.deepl.com/api-reference/style-rules
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dragoman_protocols.deepl.codes import glossary_language
from dragoman_protocols.deepl.errors import unsupported
from dragoman_protocols.deepl.fields import Fields
from dragoman_protocols.deepl.glossaries import written
from dragoman_protocols.deepl.types import MAX_INSTRUCTION_CHARS
from dragoman_protocols.errors import InvalidFieldError, UnknownGlossaryError, UnknownLanguageError
from dragoman_protocols.glossaries.store import Change
from dragoman_protocols.glossaries.styles import MAX_INSTRUCTIONS, MAX_RULES, Instruction, Rule, Style
from dragoman_protocols.glossaries.values import Outline, StoredGlossary

MAX_WORD_CHARS = 300
"""Of the name of a rule or its option; DeepL's longest has 240."""

PAGE_SIZE, MAX_PAGE_SIZE = 10, 25

StyleChange = Callable[[Style], Style]


def read_new(fields: Fields) -> StoredGlossary:
    """A new list.

    Raises:
        InvalidFieldError: A field is missing or not supported.
    """
    name, language = fields.required("name"), _language(fields.required("language"), "language")
    instructions = [read_instruction(each) for each in fields.objects("custom_instructions") or ()]
    now = datetime.now(UTC)
    style = Style(language, now, 1, _rules(fields.values.get("configured_rules")), tuple(instructions))
    return StoredGlossary(str(uuid.uuid4()), name, now, (), style=_checked(style))


def read_name(fields: Fields) -> str:
    """The name of a change."""
    return fields.required("name")


def read_rules(fields: Fields) -> tuple[Rule, ...]:
    """The rules that are a body.

    Raises:
        InvalidFieldError: It has something else.
    """
    return _rules(fields.values)


def read_instruction(fields: Fields) -> Instruction:
    """An instruction, with a new id.

    Raises:
        InvalidFieldError: A field is missing, not supported, or too long.
    """
    label, prompt = fields.required("label"), fields.required("prompt")
    if max(len(label), len(prompt)) > MAX_INSTRUCTION_CHARS:
        raise InvalidFieldError(
            f"custom_instructions: a label and a prompt have at most {MAX_INSTRUCTION_CHARS} characters"
        )
    source = fields.text("source_language")
    return Instruction(
        str(uuid.uuid4()), label, prompt, None if source is None else _language(source, "source_language")
    )


def read_page(fields: Fields) -> tuple[slice, bool]:
    """Which lists are described, and whether with their rules.

    Raises:
        InvalidFieldError: A parameter is no number, or too large.
    """
    size = _number(fields, "page_size", PAGE_SIZE, MAX_PAGE_SIZE)
    start = _number(fields, "page", 0, 1_000_000) * size
    return slice(start, start + size), bool(fields.flag("detailed"))


def style_of(glossary: StoredGlossary | Outline) -> Style:
    """The rules of a list.

    Raises:
        UnknownGlossaryError: It is a glossary.
    """
    if glossary.style is None:
        raise UnknownGlossaryError("Style rule list not found")
    return glossary.style


def changed(change: StyleChange) -> Change:
    """A change of a list's rules, which makes its next version."""

    def apply(glossary: StoredGlossary) -> StoredGlossary:
        style = change(style_of(glossary))
        return replace(glossary, style=_checked(_touched(style)))

    return apply


def renamed(name: str) -> Change:
    """The change of a list's name."""
    return lambda glossary: replace(glossary, name=name, style=_touched(style_of(glossary)))


def instruction_of(style: Style, instruction_id: str) -> Instruction:
    """One of a list's instructions.

    Raises:
        UnknownGlossaryError: There is none of this id.
    """
    for each in style.instructions:
        if each.instruction_id == instruction_id:
            return each
    raise UnknownGlossaryError("Custom instruction not found")


def with_instruction(style: Style, new: Instruction) -> Style:
    """A list with an instruction added, or in the place of the one with its id."""
    known = [new if each.instruction_id == new.instruction_id else each for each in style.instructions]
    return replace(style, instructions=tuple(known if new in known else [*known, new]))


def without_instruction(style: Style, instruction_id: str) -> Style:
    """A list without one of its instructions.

    Raises:
        UnknownGlossaryError: There is none of this id.
    """
    gone = instruction_of(style, instruction_id)
    return replace(style, instructions=tuple(each for each in style.instructions if each is not gone))


def style_json(glossary: StoredGlossary | Outline, *, detailed: bool = True) -> dict[str, Any]:
    """A list as it is described."""
    style = style_of(glossary)
    described: dict[str, Any] = {
        "style_id": glossary.glossary_id,
        "name": glossary.name,
        "creation_time": written(glossary.created),
        "updated_time": written(style.updated),
        "language": style.language,
        "version": style.version,
    }
    if detailed:
        rules: dict[str, dict[str, str]] = {}
        for rule in style.rules:
            rules.setdefault(rule.category, {})[rule.name] = rule.option
        described["configured_rules"] = rules
        described["custom_instructions"] = [instruction_json(each) for each in style.instructions]
    return described


def instruction_json(instruction: Instruction) -> dict[str, Any]:
    """An instruction as it is described."""
    described = {"id": instruction.instruction_id, "label": instruction.label, "prompt": instruction.prompt}
    return described | (
        {} if instruction.source_lang is None else {"source_language": instruction.source_lang}
    )


def _language(code: str, field: str) -> str:
    try:
        return glossary_language(code)
    except UnknownLanguageError:
        raise unsupported(field) from None


def _rules(values: object) -> tuple[Rule, ...]:
    """Rules of a JSON object by category; one that is null or empty is off."""
    if values is None:
        return ()
    if not isinstance(values, Mapping):
        raise unsupported("configured_rules")
    found = []
    for category, rules in values.items():
        if not isinstance(rules, Mapping):
            raise unsupported(f"configured_rules.{str(category)[:40]}")
        found += [
            Rule(_word(category), _word(name), _word(option)) for name, option in rules.items() if option
        ]
    return tuple(found)


def _word(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable() or len(value) > MAX_WORD_CHARS:
        raise unsupported("configured_rules")
    return value


def _checked(style: Style) -> Style:
    for name, values, most in (
        ("custom_instructions", style.instructions, MAX_INSTRUCTIONS),
        ("configured_rules", style.rules, MAX_RULES),
    ):
        _check_number(name, values, most)
    return style


def _check_number(name: str, values: Sequence[object], most: int) -> None:
    if len(values) > most:
        raise InvalidFieldError(f"{name}: at most {most} in one list")


def _touched(style: Style) -> Style:
    return replace(style, version=style.version + 1, updated=datetime.now(UTC))


def _number(fields: Fields, name: str, default: int, most: int) -> int:
    text = fields.text(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 9 or int(text) > most:
        raise unsupported(name)
    return int(text)
