"""Marks that stand in a segment for what must not be translated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

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


FORMS = {Role.ALONE: "<x{n}/>", Role.OPEN: "<x{n}>", Role.CLOSE: "</x{n}>"}
"""Models that saw markup copy tags well."""

PATTERN = (
    r"<\s{0,2}(?P<close>/)?\s{0,2}[xX]\s?(?P<number>[0-9٠-٩۰-۹०-९০-৯０-９]{1,6})\s{0,2}(?P<alone>/)?\s{0,2}>"
)
"""What is read as a marker in a model's answer, a little more than is written."""

MARKER = regex.compile(PATTERN)

RESERVED = frozenset("<>")
"""Characters that markers begin and end with."""


def written(role: Role, number: int) -> str:
    """The text of a marker."""
    return FORMS[role].format(n=number)


def read(text: str) -> Iterator[Marker]:
    """The markers in a text, in order."""
    for found in MARKER.finditer(text):
        yield Marker(_role(found), int(found["number"]), found.start(), found.end())


def _role(found: regex.Match[str]) -> Role:
    if found["close"] is not None:
        return Role.CLOSE
    return Role.OPEN if found["alone"] is None else Role.ALONE
