"""The entries of a dictionary from the formats they come in, and back.

Source: https://developers.deepl.com/docs/api-reference/glossaries#formats
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from dragoman_protocols.errors import InvalidGlossaryError
from dragoman_protocols.glossaries.values import Entry, flaw
from dragoman_protocols.memories import MAX_TERM_CHARS, MAX_TERM_WORDS, read_terms

FORMATS = ("tsv", "csv", "tmx")

Line = tuple[str, str, str]
"""A source, its target, and the words that say where they stand."""


def read_entries(text: str, entries_format: str, source_lang: str, target_lang: str) -> tuple[Entry, ...]:
    """Entries from text.

    Args:
        text: One entry a line; empty lines are ignored. TMX: its short segments are the terms.
        entries_format: One of `FORMATS`.
        source_lang: Primary subtag; of CSV lines that name languages, those of other pairs are ignored.
        target_lang: The same of the targets.

    Raises:
        InvalidGlossaryError: A line is no entry, a term cannot be kept, a source comes twice, or there is no
            entry at all.
    """
    match entries_format:
        case "tsv":
            lines = _tsv(text)
        case "csv":
            lines = _csv(text, source_lang, target_lang)
        case _:
            lines = _tmx(text, source_lang, target_lang)
    entries = _checked(lines)
    if not entries:
        raise InvalidGlossaryError("there are no entries")
    return entries


def to_tsv(entries: Iterable[Entry]) -> str:
    """Entries as tab-separated text, which `read_entries` reads again."""
    return "\n".join(f"{entry.source}\t{entry.target}" for entry in entries)


def _tmx(text: str, source_lang: str, target_lang: str) -> Iterator[Line]:
    try:
        terms = read_terms(text, source_lang, target_lang)
    except ValueError as error:
        raise InvalidGlossaryError(str(error)) from None
    if not terms:
        raise InvalidGlossaryError(
            f"there are no entries: terms are segments of at most {MAX_TERM_WORDS} words and {MAX_TERM_CHARS} "
            f"characters that have a translation from {source_lang} into {target_lang}, and are no sentences"
        )
    for index, (source, target) in enumerate(terms):
        yield source, target, f"index {index}"


def _checked(lines: Iterable[Line]) -> tuple[Entry, ...]:
    known: dict[str, tuple[Entry, str]] = {}
    for source, target, where in lines:
        entry = Entry(source.strip(), target.strip())
        for role, term in (("Key", entry.source), ("Value", entry.target)):
            if wrong := flaw(term):
                raise InvalidGlossaryError(f"{role} with the {where} {wrong}")
        if entry.source in known:
            before = known[entry.source][1]
            raise InvalidGlossaryError(f"Key with the {where} duplicates key with the {before}")
        known[entry.source] = entry, where
    return tuple(entry for entry, _ in known.values())


def _tsv(text: str) -> Iterator[Line]:
    position = 0
    for index, line in enumerate(text.split("\n")):
        where = f"index {index} (starting at position {position})"
        position += len(line) + 1
        if not line.strip():
            continue
        source, tab, target = line.partition("\t")
        if not tab:
            raise InvalidGlossaryError(f"Key with the {where} misses tab separator")
        yield source, target, where


def _csv(text: str, source_lang: str, target_lang: str) -> Iterator[Line]:
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        for index, row in enumerate(rows):
            if not any(cell.strip() for cell in row):
                continue
            if len(row) not in (2, 4):
                raise InvalidGlossaryError(
                    f"line {index + 1} has {len(row)} columns; expected source, target "
                    "and, if you like, their two languages"
                )
            named = [cell.strip().lower() for cell in row[2:]]
            if named in ([], [source_lang, target_lang]):
                yield row[0], row[1], f"index {index}"
    except csv.Error as error:
        raise InvalidGlossaryError(f"not CSV: {error}") from None
