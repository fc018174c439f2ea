"""What a caller wishes beyond a translation, and how a family of models is told so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a translation addresses its reader."""

    FORMAL = "formal"
    INFORMAL = "informal"


CHINESE_TONES = {Tone.FORMAL: "正式", Tone.INFORMAL: "非正式、口语化"}


@dataclass(frozen=True)
class Wishes:
    """What one segment's prompt says beside the segment.

    Args:
        terms: Each a term and its translation.
        context: Text that helps to understand and is not translated.
        tone: None leaves it to the model.
        instructions: The caller's, in words.
    """

    terms: tuple[tuple[str, str], ...] = ()
    context: str = ""
    tone: Tone | None = None
    instructions: tuple[str, ...] = ()


NONE = Wishes()


@dataclass(frozen=True)
class Extras:
    """How a family is told of wishes: templates, empty where it cannot be told.

    Args:
        terms: Goes before the rest; `{terms}` is a line a term.
        term: Such a line, with `{term}` and `{translation}`.
        context: Goes before all; `{context}`.
        with_context: Stands for the family's own template where there is a context; empty keeps that.
        styled: Stands for the family's own template where a tone is all that is wished; `{style}`.
        instructed: Stands for the family's own template where there are instructions, or a tone that
            `styled` does not say; `{instructions}` are lines, `{last}` the number after them.
        instruction: Such a line, with `{number}` and `{instruction}`.
        tone: A tone as an instruction, with `{style}`.
    """

    terms: str = ""
    term: str = "{term} → {translation}\n"
    context: str = ""
    with_context: str = ""
    styled: str = ""
    instructed: str = ""
    instruction: str = "- {instruction}\n"
    tone: str = "Use {style} language."

    def lacking(self, wishes: Wishes) -> Iterator[str]:
        """What of the wishes cannot be said, in words."""
        if wishes.terms and not self.terms:
            yield "a glossary"
        if wishes.context and not self.context:
            yield "a context"
        if wishes.tone and not (self.styled or self.instructed):
            yield "a tone"
        if wishes.instructions and not self.instructed:
            yield "instructions"

    def main(self, template: str, wishes: Wishes) -> str:
        """The template that asks for the translation itself."""
        if wishes.instructions or (wishes.tone and not self.styled):
            return self.instructed
        if wishes.tone:
            return self.styled
        return (wishes.context and self.with_context) or template


UNTOLD = Extras()
"""Of a family that can be told nothing beside the segment."""


def said_before(template: str) -> Extras:
    """Wishes as plain sentences before a template, as any instruction-tuned chat model takes them."""
    return Extras(
        terms="Use these translations of terms:\n{terms}\n",
        context="Context, not to be translated:\n{context}\n\n",
        instructed="Follow these instructions for the translation:\n{instructions}\n" + template,
    )
