"""The deployment's glossary: a file, usually of a ConfigMap, that is read again when it changes.

YAML: a list of `{source: en, target: de, terms: {invoice: Rechnung}}`. Anything that ends in `.tsv`: lines of
source language, target language, term, translation, separated by tabs. `#` begins a comment line.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dragoman_contract.languages import Languages, LanguageTag, serves
from dragoman_contract.plain_yaml import read_yaml
from dragoman_protocols.errors import SettingsError
from dragoman_protocols.glossaries.matching import Glossary, Term
from dragoman_protocols.languages import Pair

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0
"""A kubelet takes up to a minute to bring a changed ConfigMap to its pods; a look costs a system call."""

MOST_BYTES = 4 * 1024 * 1024
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
    """A glossary as its file has it.

    Args:
        text: Of the file.
        tabs: Whether it is lines with tabs rather than YAML.

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

    Args:
        path: Of the file.
        clock: Seconds, monotonic.

    Attributes:
        problem: Why the file as it is now cannot be used; empty where it is in force.

    Raises:
        SettingsError: It cannot be read, or is no glossary.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked_s = clock()
        self._reading = False
        self.problem = ""
        self._made: dict[tuple[Languages, ...], Glossary | None] = {}
        """By the pairs of the file that hold: there are few, whatever tags callers name."""
        self._unusable = ""
        try:
            self._judged = self._state()
            self._deployed = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"--glossary {path}: {_said(error)}") from None

    @property
    def terms(self) -> int:
        """How many terms are in force, over all pairs."""
        return sum(len(entry.terms) for entry in self._deployed.entries)

    def of(self, pair: Pair) -> Glossary | None:
        """The terms that hold for a pair; None if there are none."""
        deployed, made = self._deployed, self._made
        key = deployed.holding(pair.source.tag, pair.target.tag)
        if key not in made:
            made[key] = deployed.glossary(key)
        return made[key]

    def is_made(self, pair: Pair) -> bool:
        """Whether `of` has the terms at hand; else it makes them, in seconds where there are very many."""
        return self._deployed.holding(pair.source.tag, pair.target.tag) in self._made

    async def watch(self) -> None:
        """Look again and again until cancelled, so that an edit is heeded, or complained of, without requests."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            await self._look()

    async def refresh(self) -> None:
        """Read the file again if it changed; what cannot be read leaves the last good glossary in force."""
        if self._clock() - self._looked_s >= LOOK_EVERY_S:
            await self._look()

    async def _look(self) -> None:
        if self._reading:
            return
        self._looked_s = self._clock()
        self._reading = True
        try:
            problem = await self._judge()
        finally:
            self._reading = False
        if problem and problem != self.problem:
            log.warning("%s: %s; the last good terms stay in force", self._path, problem)
        self.problem = problem

    async def _judge(self) -> str:
        """What is wrong with the file, which is read where it changed; empty where nothing is."""
        try:
            state = self._state()
            if state != self._judged:
                try:
                    self._deployed = await asyncio.to_thread(self._read)
                except ValueError as error:
                    self._unusable = _said(error)
                else:
                    self._made, self._unusable = {}, ""
                    log.info("%s: read again, %d terms", self._path, self.terms)
                self._judged = state
        except OSError as error:
            return _said(error)
        return self._unusable

    def _state(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> Deployed:
        if self._path.stat().st_size > MOST_BYTES:
            raise ValueError(f"over {MOST_BYTES} bytes")
        text = self._path.read_text(encoding="utf-8")
        return parsed(text, tabs=self._path.suffix == ".tsv")


def _said(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
