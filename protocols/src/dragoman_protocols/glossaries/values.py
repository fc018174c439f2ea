"""A glossary, its dictionaries, and what can be done with them; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from pydantic import TypeAdapter

from dragoman_protocols.errors import InvalidGlossaryError, UnknownDictionaryError
from dragoman_protocols.glossaries.matching import Glossary, Term
from dragoman_protocols.glossaries.styles import Style

MAX_NAME_CHARS = 1024

MAX_TERM_BYTES = 1024
"""Of a term in UTF-8. Source: https://developers.deepl.com/docs/api-reference/glossaries"""

MAX_DICTIONARIES = 200

MAX_GLOSSARY_BYTES = 900_000
"""Of all names and terms in UTF-8: a glossary with its frame fits a ConfigMap, which holds 1 MiB."""

MAX_SEARCHED_CHARS = 20_000
"""Finding the entries of more takes longer than it spares."""

UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Controls, tabs and line breaks among them."""


@dataclass(frozen=True)
class Entry:
    """One term and its translation, both as they shall be matched and written: not blank, on one line."""

    source: str
    target: str


@dataclass(frozen=True)
class Dictionary:
    """The terms of one pair of languages.

    Args:
        source_lang: Primary language subtag, lower case: `en`.
        target_lang: The same of the translations.
        entries: No two with the same source.
    """

    source_lang: str
    target_lang: str
    entries: tuple[Entry, ...]

    @property
    def pair(self) -> tuple[str, str]:
        """What distinguishes it from the other dictionaries of its glossary."""
        return self.source_lang, self.target_lang

    @property
    def outline(self) -> DictionaryOutline:
        """The same without its entries."""
        return DictionaryOutline(self.source_lang, self.target_lang, len(self.entries))

    @cached_property
    def glossary(self) -> Glossary:
        """The same, ready to be searched for; 10,000 entries take a tenth of a second, once."""
        return Glossary(tuple(Term(entry.source, entry.target) for entry in self.entries))


@dataclass(frozen=True)
class DictionaryOutline:
    """A dictionary without its entries."""

    source_lang: str
    target_lang: str
    entry_count: int


@dataclass(frozen=True)
class Outline:
    """A glossary without its entries: what lists show, and what a store can tell without reading all of it."""

    glossary_id: str
    name: str
    created: datetime
    dictionaries: tuple[DictionaryOutline, ...]
    owner: str | None = None
    style: Style | None = None


@dataclass(frozen=True)
class StoredGlossary:
    """A glossary as a store keeps it.

    Args:
        glossary_id: A UUID in its usual form, lower case.
        name: As its maker calls it; need not be unique.
        created: When it was made, with a time zone.
        dictionaries: No two of the same pair.
        owner: Name of the caller who alone sees it; None: all callers do.
        style: Set for a list of style rules, which has no dictionaries.
    """

    glossary_id: str
    name: str
    created: datetime
    dictionaries: tuple[Dictionary, ...]
    owner: str | None = None
    style: Style | None = None

    @property
    def outline(self) -> Outline:
        """The same without its entries."""
        return Outline(
            self.glossary_id,
            self.name,
            self.created,
            tuple(dictionary.outline for dictionary in self.dictionaries),
            self.owner,
            self.style,
        )

    def dictionary(self, source_lang: str, target_lang: str) -> Dictionary:
        """The dictionary of a pair of primary language subtags.

        Raises:
            UnknownDictionaryError: There is none.
        """
        for found in self.dictionaries:
            if found.pair == (source_lang, target_lang):
                return found
        raise UnknownDictionaryError(
            f"No dictionary found for language pair {source_lang}-{target_lang} in glossary"
        )

    def renamed(self, name: str) -> StoredGlossary:
        """With another name."""
        return replace(self, name=name)

    def with_dictionary(self, new: Dictionary) -> StoredGlossary:
        """With `new` in place of the dictionary of its pair, or beside the others."""
        if all(known.pair != new.pair for known in self.dictionaries):
            return replace(self, dictionaries=(*self.dictionaries, new))
        return replace(
            self,
            dictionaries=tuple(new if known.pair == new.pair else known for known in self.dictionaries),
        )

    def with_entries(self, new: Dictionary) -> StoredGlossary:
        """With the entries of `new` added to the dictionary of its pair; of two for a source, the new holds."""
        known = next((one for one in self.dictionaries if one.pair == new.pair), None)
        if known is None:
            return self.with_dictionary(new)
        entries = {entry.source: entry for entry in (*known.entries, *new.entries)}
        return self.with_dictionary(replace(known, entries=tuple(entries.values())))

    def without_dictionary(self, source_lang: str, target_lang: str) -> StoredGlossary:
        """Without the dictionary of a pair.

        Raises:
            UnknownDictionaryError: There is none.
        """
        gone = self.dictionary(source_lang, target_lang)
        return replace(self, dictionaries=tuple(one for one in self.dictionaries if one is not gone))

    def checked(self) -> StoredGlossary:
        """Itself, where it keeps to the bounds.

        Raises:
            InvalidGlossaryError: It does not; the message says which.
        """
        if not self.name.strip() or len(self.name) > MAX_NAME_CHARS:
            raise InvalidGlossaryError(f"name: expected 1 to {MAX_NAME_CHARS} characters that are not blank")
        if not self.name.isprintable():
            raise InvalidGlossaryError("name: control characters and line breaks are not allowed")
        pairs = [dictionary.pair for dictionary in self.dictionaries]
        if len(set(pairs)) < len(pairs):
            raise InvalidGlossaryError("dictionaries: two are for the same pair of languages")
        if len(pairs) > MAX_DICTIONARIES:
            raise InvalidGlossaryError(f"dictionaries: at most {MAX_DICTIONARIES} in one glossary")
        size_bytes = len(self.name.encode()) + sum(map(_size_bytes, self.dictionaries))
        if size_bytes > MAX_GLOSSARY_BYTES:
            raise InvalidGlossaryError(
                f"entries: {size_bytes} bytes in one glossary; at most {MAX_GLOSSARY_BYTES} are kept"
            )
        return self


def terms(dictionaries: Iterable[Dictionary], texts: Sequence[str]) -> tuple[Term, ...]:
    """What dictionaries have for texts, as the core takes it; of two for a source, the first holds.

    Args:
        dictionaries: Of the texts' pair.
        texts: As the model will see them, markup aside. Entries that are in none are left out, for the core
            looks at each that it is given in every request; in long texts nothing is left out.
    """
    found: dict[str, Term] = {}
    long = sum(map(len, texts)) > MAX_SEARCHED_CHARS
    for dictionary in dictionaries:
        glossary = dictionary.glossary
        for part in [glossary.terms] if long else map(glossary.applying, texts):
            for term in part:
                found.setdefault(term.source, term)
    return tuple(found.values())


def flaw(term: str) -> str | None:
    """Why a term cannot be kept, or None where it can.

    Args:
        term: Without blanks at its ends.
    """
    if not term:
        return "is empty"
    try:
        size_bytes = len(term.encode())
    except UnicodeEncodeError:
        return "is not valid Unicode"
    if size_bytes > MAX_TERM_BYTES:
        return f"is longer than {MAX_TERM_BYTES} bytes"
    if UNPRINTABLE.search(term):
        return "has control characters or line breaks"
    return None


def _size_bytes(dictionary: Dictionary) -> int:
    return sum(len(entry.source.encode()) + len(entry.target.encode()) + 2 for entry in dictionary.entries)


_DOCUMENT = TypeAdapter(StoredGlossary)


def written(glossary: StoredGlossary) -> bytes:
    """The document; the same glossary gives the same bytes. One without an owner has no field for it."""
    return _DOCUMENT.dump_json(glossary, exclude_none=True)


@dataclass(frozen=True)
class _Owned:
    owner: str | None = None


_OWNED = TypeAdapter(_Owned)


def owner_in(document: bytes) -> str | None:
    """The owner in a document, which may be damaged elsewhere; None: all callers see it.

    Raises:
        ValueError: It is no JSON object, or its owner is no name.
    """
    return _OWNED.validate_json(document).owner


def read(document: bytes) -> StoredGlossary:
    """The glossary in a document. Takes tens of milliseconds for a large one: call it in a thread.

    Raises:
        ValueError: There is none in it.
    """
    return _DOCUMENT.validate_json(document)
