"""Marks that stand in a segment for what must not be translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import regex


class Role(StrEnum):
    """What a marker does: alone it stands for something, as a pair it wraps text."""

    ALONE = "alone"
    OPEN = "open"
    CLOSE = "close"


@dataclass(frozen=True)
class Marker:
    """One marker as it stands in a text.

    Args:
        role: Alone, or one of a pair.
        number: From 1; both ends of a pair share it.
        start: Character offset of its first character.
        end: Character offset behind its last.
    """

    role: Role
    number: int
    start: int
    end: int


@dataclass(frozen=True)
class MarkerStyle:
    """How markers are written for a model.

    Args:
        name: Its name in settings.
        alone: With `{n}` for the number, as the two below.
        opening: First of a pair.
        closing: Last of a pair.
        pattern: What is read as a marker in a model's answer, a little more than is written; its groups
            `close`, `number` and `alone` tell the role.
        reserved: Characters that markers begin and end with.
    """

    name: str
    alone: str
    opening: str
    closing: str
    pattern: str
    reserved: frozenset[str]

    def written(self, role: Role, number: int) -> str:
        """The text of a marker."""
        form = {Role.ALONE: self.alone, Role.OPEN: self.opening, Role.CLOSE: self.closing}[role]
        return form.format(n=number)

    def read(self, text: str) -> Iterator[Marker]:
        """The markers in a text, in order."""
        for found in compiled(self.pattern).finditer(text):
            role = _role(found)
            yield Marker(role, int(found["number"]), found.start(), found.end())


def _role(found: regex.Match[str]) -> Role:
    if found["close"] is not None:
        return Role.CLOSE
    return Role.OPEN if found["alone"] is None else Role.ALONE


@cache
def compiled(pattern: str) -> regex.Pattern[str]:
    """A pattern of a style, compiled once."""
    return regex.compile(pattern)


X_TAGS = MarkerStyle(
    name="x-tags",
    alone="<x{n}/>",
    opening="<x{n}>",
    closing="</x{n}>",
    pattern=r"<\s{0,2}(?P<close>/)?\s{0,2}[xX]\s?(?P<number>[0-9٠-٩۰-۹०-९০-৯０-９]{1,6})\s{0,2}(?P<alone>/)?\s{0,2}>",
    reserved=frozenset("<>"),
)
"""The default: models that saw markup copy it well."""

BRACKETS = MarkerStyle(
    name="brackets",
    alone="[[{n}]]",
    opening="[[{n}+]]",
    closing="[[{n}-]]",
    pattern=r"\[\[\s?(?P<number>[0-9٠-٩۰-۹०-९০-৯０-９]{1,6})\s?(?:(?P<close>-)|\+|(?P<alone>))\s?\]\]",
    reserved=frozenset("[]"),
)
"""For models that drop or translate tags."""

STYLES = {style.name: style for style in (X_TAGS, BRACKETS)}
"""Every style by its name."""
