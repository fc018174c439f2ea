"""A list of style rules, which a store keeps as it keeps a glossary; pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

MAX_INSTRUCTIONS = 10
"""In one list; all are in each prompt."""

MAX_RULES = 50


@dataclass(frozen=True)
class Instruction:
    """An instruction to the model in words.

    Args:
        label: Its name.
        source_lang: Primary subtag of the source that it is for; None: any.
    """

    instruction_id: str
    label: str
    prompt: str
    source_lang: str | None = None


@dataclass(frozen=True)
class Rule:
    """A rule of DeepL's catalogue, such as `apostrophe` of `punctuation`, and the option that was chosen for it."""

    category: str
    name: str
    option: str


@dataclass(frozen=True)
class Style:
    """The rules of one target language.

    Args:
        language: Primary subtag of the target.
        updated: Time of the last change, with a time zone.
        version: Number of changes, and one.
    """

    language: str
    updated: datetime
    version: int = 1
    rules: tuple[Rule, ...] = ()
    instructions: tuple[Instruction, ...] = ()

    def prompts(self, source_lang: str | None) -> tuple[str, ...]:
        """What the model is instructed to do: the instructions, and the rules of each category in one sentence.

        Args:
            source_lang: Primary subtag of the source; None: detected, and instructions for a source are left out.
        """
        by_category: dict[str, list[str]] = {}
        for rule in self.rules:
            by_category.setdefault(rule.category, []).append(f"{_words(rule.name)}: {_words(rule.option)}")
        own = [each.prompt for each in self.instructions if each.source_lang in (None, source_lang)]
        return (
            *own,
            *(f"{_words(name).capitalize()}: {'; '.join(found)}." for name, found in by_category.items()),
        )


def _words(name: str) -> str:
    return name.replace("_", " ")
