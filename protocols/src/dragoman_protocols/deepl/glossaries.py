"""DeepL's glossaries of v2 (one pair of languages) and v3 (several), as values and as JSON; pure."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from dragoman_protocols.deepl.codes import glossary_language
from dragoman_protocols.deepl.errors import missing, unsupported
from dragoman_protocols.deepl.fields import Fields
from dragoman_protocols.errors import InvalidFieldError, UnknownGlossaryError, UnknownLanguageError
from dragoman_protocols.glossaries.entries import FORMATS, read_entries, to_tsv
from dragoman_protocols.glossaries.store import Change
from dragoman_protocols.glossaries.values import Dictionary, DictionaryOutline, Outline, StoredGlossary

OneDictionary = TypeVar("OneDictionary", Dictionary, DictionaryOutline)


def read_pair(fields: Fields) -> tuple[str, str]:
    """The pair that `source_lang` and `target_lang` name, as primary subtags.

    Raises:
        InvalidFieldError: One is missing, no language, a variant of one, or both are the same.
    """
    codes = fields.required("source_lang"), fields.required("target_lang")
    try:
        source, target = map(glossary_language, codes)
    except UnknownLanguageError:
        raise _unsupported_pair() from None
    if source == target:
        raise _unsupported_pair()
    return source, target


def read_dictionary(fields: Fields) -> Dictionary:
    """A dictionary: its pair, its entries and the format that they are in.

    Raises:
        InvalidFieldError: A field is missing or not supported.
        InvalidGlossaryError: An entry cannot be kept.
    """
    source, target = read_pair(fields)
    entries_format = fields.choice("entries_format", FORMATS)
    if entries_format is None:
        raise missing("entries_format")
    return Dictionary(
        source, target, read_entries(fields.required("entries"), entries_format, source, target)
    )


def read_monolingual(fields: Fields) -> StoredGlossary:
    """A new glossary of v2.

    Raises:
        InvalidFieldError: See `read_dictionary`.
        InvalidGlossaryError: See there.
    """
    return _new(fields.required("name"), [read_dictionary(fields)])


def read_multilingual(fields: Fields) -> StoredGlossary:
    """A new glossary of v3, perhaps without dictionaries.

    Raises:
        InvalidFieldError: See `read_dictionary`.
        InvalidGlossaryError: See there.
    """
    dictionaries = fields.objects("dictionaries") or ()
    return _new(fields.required("name"), [read_dictionary(each) for each in dictionaries])


def read_change(fields: Fields) -> Change:
    """The change of a `PATCH`: another name, or entries to add to one dictionary, or both.

    Raises:
        InvalidFieldError: See `read_dictionary`; or it has no change, or several dictionaries.
        InvalidGlossaryError: See there.
    """
    name = fields.text("name")
    dictionaries = [read_dictionary(each) for each in fields.objects("dictionaries") or ()]
    if name is None and not dictionaries:
        raise InvalidFieldError("Glossary name or dictionaries must be provided")
    if len(dictionaries) > 1:
        raise unsupported("dictionaries")

    def change(glossary: StoredGlossary) -> StoredGlossary:
        changed = glossary if name is None else glossary.renamed(name)
        for dictionary in dictionaries:
            changed = changed.with_entries(dictionary)
        return changed

    return change


def monolingual(glossaries: Iterable[Outline]) -> list[Outline]:
    """Those that v2 can describe: they have one dictionary."""
    return [glossary for glossary in glossaries if len(glossary.dictionaries) == 1]


def only_dictionary(dictionaries: Sequence[OneDictionary]) -> OneDictionary:
    """The one dictionary of a glossary of v2.

    Raises:
        UnknownGlossaryError: It has none or several, and is for v3 alone.
    """
    if len(dictionaries) != 1:
        raise UnknownGlossaryError("Glossary not found; v3 has it, for it is not of one pair of languages")
    return dictionaries[0]


def monolingual_json(glossary: Outline) -> dict[str, Any]:
    """A glossary as v2 describes it.

    Raises:
        UnknownGlossaryError: See `only_dictionary`.
    """
    return {
        "glossary_id": glossary.glossary_id,
        "name": glossary.name,
        "ready": True,
        **dictionary_json(only_dictionary(glossary.dictionaries)),
        "creation_time": written(glossary.created),
    }


def multilingual_json(glossary: Outline) -> dict[str, Any]:
    """A glossary as v3 describes it."""
    return {
        "glossary_id": glossary.glossary_id,
        "name": glossary.name,
        "dictionaries": [dictionary_json(dictionary) for dictionary in glossary.dictionaries],
        "creation_time": written(glossary.created),
    }


def dictionary_json(dictionary: DictionaryOutline) -> dict[str, Any]:
    """A dictionary without its entries."""
    return {
        "source_lang": dictionary.source_lang,
        "target_lang": dictionary.target_lang,
        "entry_count": dictionary.entry_count,
    }


def entries_json(dictionary: Dictionary) -> dict[str, Any]:
    """A dictionary with its entries, as v3 answers it."""
    return {
        "dictionaries": [
            {
                "source_lang": dictionary.source_lang,
                "target_lang": dictionary.target_lang,
                "entries": to_tsv(dictionary.entries),
                "entries_format": "tsv",
            }
        ]
    }


def _new(name: str, dictionaries: Sequence[Dictionary]) -> StoredGlossary:
    return StoredGlossary(str(uuid.uuid4()), name, datetime.now(UTC), tuple(dictionaries))


def written(moment: datetime) -> str:
    """A time, always with a fraction and a zone: the clients read no other form."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _unsupported_pair() -> InvalidFieldError:
    return InvalidFieldError("Unsupported glossary source and target language pair")
