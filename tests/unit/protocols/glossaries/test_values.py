from dataclasses import replace
from datetime import UTC, datetime

import pytest

from dragoman_protocols.errors import InvalidGlossaryError, UnknownDictionaryError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.glossaries.values import (
    MAX_GLOSSARY_BYTES,
    MAX_SEARCHED_CHARS,
    Dictionary,
    Entry,
    StoredGlossary,
    terms,
)


def make_dictionary(source: str = "en", target: str = "de", **entries: str) -> Dictionary:
    return Dictionary(source, target, tuple(Entry(*entry) for entry in (entries or {"cat": "Katze"}).items()))


def make_glossary(*dictionaries: Dictionary) -> StoredGlossary:
    return StoredGlossary(
        "96ab91fd-e715-41a1-adeb-5d701f84a483",
        "Animals",
        datetime(2026, 11, 1, tzinfo=UTC),
        dictionaries or (make_dictionary(),),
    )


def test_a_dictionary_is_found_by_its_pair() -> None:
    both = make_glossary(make_dictionary(), make_dictionary("de", "en", Katze="cat"))
    assert both.dictionary("de", "en").entries == (Entry("Katze", "cat"),)
    with pytest.raises(UnknownDictionaryError, match="language pair de-fr"):
        both.dictionary("de", "fr")


def test_entries_are_added_and_of_two_the_new_holds() -> None:
    changed = make_glossary().with_entries(make_dictionary(cat="Kater", dog="Hund"))
    assert changed.dictionary("en", "de").entries == (Entry("cat", "Kater"), Entry("dog", "Hund"))
    changed = changed.with_entries(make_dictionary("en", "fr", cat="chat"))
    assert [dictionary.pair for dictionary in changed.dictionaries] == [("en", "de"), ("en", "fr")]


def test_a_dictionary_is_replaced_in_its_place() -> None:
    changed = make_glossary(make_dictionary(), make_dictionary("en", "fr")).with_dictionary(
        make_dictionary(dog="Hund")
    )
    assert [dictionary.entries[0].source for dictionary in changed.dictionaries] == ["dog", "cat"]


def test_a_dictionary_is_dropped() -> None:
    assert make_glossary().without_dictionary("en", "de").dictionaries == ()
    with pytest.raises(UnknownDictionaryError):
        make_glossary().without_dictionary("de", "en")


def test_of_two_terms_the_first_dictionary_holds() -> None:
    first, second = make_dictionary(), make_dictionary(cat="Kater", dog="Hund")
    assert terms([first, second], ["A dog.", "Two cat, Cat"]) == (Term("cat", "Katze"), Term("dog", "Hund"))


def test_terms_of_no_text_are_left_out_of_short_requests() -> None:
    dictionary = make_dictionary(cat="Katze", dog="Hund")
    assert terms([dictionary], ["The dog sleeps.", "catalogue"]) == (Term("dog", "Hund"),)
    assert len(terms([dictionary], ["x" * (MAX_SEARCHED_CHARS + 1)])) == 2


@pytest.mark.parametrize("name", ["", "  ", "a\nb", "a\x00", "\ud800", "x" * 1025])
def test_names_are_bounded(name: str) -> None:
    with pytest.raises(InvalidGlossaryError, match="name: "):
        make_glossary().renamed(name).checked()


def test_a_glossary_is_bounded_so_that_it_fits_a_config_map() -> None:
    half = replace(
        make_dictionary(),
        entries=tuple(Entry(f"{number:06}", "x" * 92) for number in range(MAX_GLOSSARY_BYTES // 200)),
    )
    kept = make_glossary(half)
    assert kept.checked() is kept
    with pytest.raises(InvalidGlossaryError, match=f"at most {MAX_GLOSSARY_BYTES} are kept"):
        kept.with_dictionary(replace(half, target_lang="fr")).checked()


def test_two_dictionaries_of_a_pair_are_refused() -> None:
    with pytest.raises(InvalidGlossaryError, match="two are for the same pair"):
        make_glossary(make_dictionary(), make_dictionary()).checked()
