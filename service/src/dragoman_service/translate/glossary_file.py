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
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from dragoman_contract.languages import Languages, LanguageTag, serves
from dragoman_service.errors import SettingsError
from dragoman_service.languages import Pair
from dragoman_service.text.glossary import Glossary, Term

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

    def glossary(self, source_lang: str, target_lang: str) -> Glossary | None:
        """The terms that hold for a pair; None if there are none."""
        terms = tuple(
            Term(term, translation, entry.case_sensitive)
            for entry in self.entries
            if serves((Languages(source=entry.source, targets=(entry.target,)),), source_lang, target_lang)
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
    try:
        read: Any = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"no YAML{f', line {mark.line + 1}' if mark else ''}") from None
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
    """A deployment's glossary as its file has it now.

    Args:
        path: Of the file.
        clock: Seconds, monotonic.

    Raises:
        SettingsError: It cannot be read, or is no glossary.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked_s = clock()
        self._reading = False
        self._by_pair: dict[tuple[str, str], Glossary | None] = {}
        try:
            self._seen, self._deployed = self._read()
        except (OSError, ValueError) as error:
            raise SettingsError(f"--glossary {path}: {_said(error)}") from None

    def of(self, pair: Pair) -> Glossary | None:
        """The terms that hold for a pair; None if there are none."""
        key = (pair.source.tag, pair.target.tag)
        if key not in self._by_pair:
            self._by_pair[key] = self._deployed.glossary(*key)
        return self._by_pair[key]

    async def refresh(self) -> None:
        """Read the file again if it changed; what cannot be read leaves the last good glossary in force."""
        if self._reading or self._clock() - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = self._clock()
        self._reading = True
        try:
            if self._state() != self._seen:
                self._seen, self._deployed = await asyncio.to_thread(self._read)
                self._by_pair = {}
                log.info("read the glossary again: %d entries", len(self._deployed.entries))
        except (OSError, ValueError) as error:
            log.warning("the glossary stays as it was: %s", _said(error))
        finally:
            self._reading = False

    def _state(self) -> tuple[int, int, int]:
        found = self._path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> tuple[tuple[int, int, int], Deployed]:
        state = self._state()
        if state[2] > MOST_BYTES:
            raise ValueError(f"over {MOST_BYTES} bytes")
        text = self._path.read_text(encoding="utf-8")
        return state, parsed(text, tabs=self._path.suffix == ".tsv")


def _said(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
