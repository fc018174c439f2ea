"""Language pairs of the spec and of engine pods."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

ANY = "*"
"""Stands for every language on its side of a pair."""

TAG_PATTERN = r"^([A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*|\*)$"
"""A BCP-47 tag (RFC 5646 section 2.1) without grandfathered and private-use forms, or ``*``."""

MAX_TAG_CHARS = 35
"""Enough for every tag of a language with script, region and variants (RFC 5646 section 4.4.1)."""

LanguageTag = Annotated[str, StringConstraints(pattern=TAG_PATTERN, max_length=MAX_TAG_CHARS)]
"""A BCP-47 tag such as ``de``, ``zh-Hant`` or ``pt-BR``, or ``*`` for any language."""


class Languages(BaseModel):
    """One source language and the languages it is translated into."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: LanguageTag = Field(
        description='Source language as a BCP-47 tag, such as "en". "*": any language.'
    )
    targets: tuple[LanguageTag, ...] = Field(
        min_length=1,
        max_length=200,
        description='Target languages as BCP-47 tags, such as ["de", "fr"]. "*": any language.',
    )


def is_tag(tag: str) -> bool:
    """Whether `tag` has the form of a BCP-47 tag (``*`` is none) of at most `MAX_TAG_CHARS`.

    Parsers of tags take time quadratic in their length: nothing longer may reach one.
    """
    return tag != ANY and len(tag) <= MAX_TAG_CHARS and re.fullmatch(TAG_PATTERN, tag) is not None


def serves(languages: tuple[Languages, ...], source: str, target: str) -> bool:
    """Whether the pair is among `languages`.

    A region or script falls back to its language: ``pt-BR`` is served where ``pt`` is. The reverse does
    not hold: a request for ``pt`` is refused if only ``pt-BR`` is listed. Without
    `languages` every pair is served.
    """
    if not languages:
        return True
    return any(
        _covers(entry.source, source) and any(_covers(listed, target) for listed in entry.targets)
        for entry in languages
    )


def _covers(listed: str, requested: str) -> bool:
    listed, requested = listed.lower(), requested.lower()
    return listed == ANY or requested == listed or requested.startswith(listed + "-")
