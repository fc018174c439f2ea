from dragoman_contract.languages import Languages
from dragoman_protocols.languages import language
from dragoman_protocols.offer import COMMON, name_in, offer_of


def pairs(*entries: tuple[str, tuple[str, ...]]) -> tuple[Languages, ...]:
    return tuple(Languages(source=source, targets=targets) for source, targets in entries)


def test_listed_pairs_are_offered_as_they_are() -> None:
    offer = offer_of([pairs(("en", ("de", "pt")), ("de", ("en",)), ("en", ("fr", "de")))])
    assert offer.sources == ("en", "de")
    assert offer.targets == {"en": ("de", "pt", "fr"), "de": ("en",)}
    assert offer.all_targets == ("de", "pt", "fr", "en")
    assert offer.all_languages == ("en", "de", "pt", "fr")


def test_any_is_written_out_on_its_side() -> None:
    into_english = offer_of([pairs(("*", ("en",)))])
    assert into_english.all_targets == ("en",)
    assert set(into_english.sources) == set(COMMON) - {"en"}
    from_klingon = offer_of([pairs(("tlh", ("*",)))])
    assert from_klingon.sources == ("tlh",)
    assert set(from_klingon.targets["tlh"]) == set(COMMON)


def test_no_pairs_are_all_pairs() -> None:
    offer = offer_of([()])
    assert set(offer.sources) == set(offer.all_targets) == set(COMMON)
    assert all(source not in targets for source, targets in offer.targets.items())


def test_a_language_that_becomes_only_itself_is_no_source() -> None:
    assert offer_of([pairs(("de", ("de",)))]).sources == ()


def test_all_that_is_offered_has_a_name() -> None:
    for tag in COMMON:
        assert language(tag).tag == tag
        assert name_in(tag, "de")
    assert name_in("de", "fr") == "allemand"
    assert name_in("de", "no locale!") == "German"
