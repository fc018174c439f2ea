"""The deployment's glossary: a file, usually of a ConfigMap, that is reloaded when it changes.

YAML: a list of `{source: en, target: de, terms: {invoice: Rechnung}}`. Anything that ends in `.tsv`: lines of
source language, target language, term, translation, separated by tabs. `#` begins a comment line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dragoman_contract.languages import Languages, LanguageTag, serves
from dragoman_protocols.glossaries.matching import Glossary, Term
from dragoman_protocols.languages import Pair
from dragoman_service.errors import SettingsError
from dragoman_system.live_files import POLL_S, LiveFiles, read_yaml, reason

MAX_BYTES = 4 * 1024 * 1024
"""Four times what a ConfigMap holds."""


class Entry(BaseModel):
    """The terms of one pair."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    source: LanguageTag = Field(description="of the text; a region or script falls back to its language")
    target: LanguageTag = Field(description="of the translation")
    terms: dict[str, str] = Field(description="translations by term")
    case_sensitive: bool = Field(False, description="whether terms are matched only as they are written")


ENTRIES = TypeAdapter(tuple[Entry, ...])


@dataclass(frozen=True)
class Deployed:
    """A glossary of several pairs.

    Args:
        entries: Each a pair's; of two with the same term the first holds.
    """

    entries: tuple[Entry, ...]

    @cached_property
    def pairs(self) -> tuple[Languages, ...]:
        """The pairs that have terms, each once."""
        named = dict.fromkeys((entry.source, entry.target) for entry in self.entries)
        return tuple(Languages(source=source, targets=(target,)) for source, target in named)

    def holding(self, source_lang: str, target_lang: str) -> tuple[Languages, ...]:
        """Those of `pairs` whose terms hold for a pair of languages."""
        return tuple(each for each in self.pairs if serves((each,), source_lang, target_lang))

    def glossary(self, pairs: tuple[Languages, ...]) -> Glossary | None:
        """The terms of some of `pairs`; None if there are none."""
        wanted = {(each.source, each.targets[0]) for each in pairs}
        terms = tuple(
            Term(term, translation, entry.case_sensitive)
            for entry in self.entries
            if (entry.source, entry.target) in wanted
            for term, translation in entry.terms.items()
        )
        return Glossary(terms) if terms else None


def parsed(text: str, *, tabs: bool) -> Deployed:
    """A glossary in YAML, or in lines with tabs.

    Raises:
        ValueError: It is neither; the message names the place.
    """
    if tabs:
        return Deployed(tuple(_tab_separated(text)))
    read = read_yaml(text)
    try:
        return Deployed(ENTRIES.validate_python(read if read is not None else ()))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the list'}: {first['msg']}") from None


def _tab_separated(text: str) -> Iterator[Entry]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 4 or not all(cells):
            raise ValueError(f"line {number}: four cells are needed: source, target, term, translation")
        try:
            yield Entry(source=cells[0], target=cells[1], terms={cells[2]: cells[3]})
        except ValidationError:
            raise ValueError(f"line {number}: {cells[0]!r} or {cells[1]!r} is no language tag") from None


class GlossaryFile:
    """A deployment's glossary as its file has it now, or had it when it could last be read.

    Raises:
        SettingsError: It cannot be read, or is no glossary.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._checked_s = clock()
        self._file = LiveFiles(str(path), [path], self._load, (OSError, ValueError), in_thread=True)
        self.watch = self._file.watch
        try:
            self._load()
        except (OSError, ValueError) as error:
            raise SettingsError(f"--glossary {path}: {reason(error)}") from None

    @property
    def problem(self) -> str:
        """Why the file cannot be used as it is now; empty if it is in force."""
        return self._file.problem

    @property
    def terms(self) -> int:
        """How many terms are in force, over all pairs."""
        return sum(len(entry.terms) for entry in self._in_force[0].entries)

    def of(self, pair: Pair) -> Glossary | None:
        """The terms that hold for a pair; None if there are none."""
        deployed, made = self._in_force
        key = deployed.holding(pair.source.tag, pair.target.tag)
        if key not in made:
            made[key] = deployed.glossary(key)
        return made[key]

    def is_made(self, pair: Pair) -> bool:
        """Whether `of` has the terms at hand; else it makes them, in seconds where there are very many."""
        deployed, made = self._in_force
        return deployed.holding(pair.source.tag, pair.target.tag) in made

    async def refresh(self) -> None:
        """Reload the file if it changed; checked at most every `POLL_S`. For a process that does not `watch`."""
        if self._clock() - self._checked_s >= POLL_S:
            self._checked_s = self._clock()
            await self._file.check()

    def _load(self) -> None:
        if self._path.stat().st_size > MAX_BYTES:
            raise ValueError(f"over {MAX_BYTES} bytes")
        text = self._path.read_text(encoding="utf-8")
        made: dict[tuple[Languages, ...], Glossary | None] = {}
        # By the pairs of the file that hold: there are few, and clients can name any tags.
        self._in_force = parsed(text, tabs=self._path.suffix == ".tsv"), made
