import pytest
from pydantic import ValidationError

from dragoman_contract.languages import Languages, is_tag, serves

EUROPEAN = (Languages(source="en", targets=("de", "fr")), Languages(source="fr", targets=("en",)))


@pytest.mark.parametrize(
    ("source", "target", "served"),
    [
        ("en", "de", True),
        ("en", "ne", False),
        ("de", "en", False),
        ("fr", "en", True),
        ("en-GB", "de-AT", True),
        ("EN", "De", True),
        ("eng", "de", False),
    ],
)
def test_a_pair_is_served_where_both_sides_are_listed(source: str, target: str, served: bool) -> None:
    assert serves(EUROPEAN, source, target) is served


def test_a_region_is_not_served_for_its_language_when_only_the_region_is_listed() -> None:
    brazilian = (Languages(source="en", targets=("pt-BR",)),)
    assert serves(brazilian, "en", "pt-BR")
    assert not serves(brazilian, "en", "pt")
    assert not serves(brazilian, "en", "pt-PT")


def test_a_star_is_any_language() -> None:
    assert serves((Languages(source="*", targets=("en",)),), "ja", "en")
    assert not serves((Languages(source="*", targets=("en",)),), "en", "ja")


def test_no_list_serves_every_pair() -> None:
    assert serves((), "en", "tlh")


@pytest.mark.parametrize("tag", ["de", "zh-Hant", "pt-BR", "sr-Latn-RS", "gsw", "es-419"])
def test_tags_of_bcp_47_are_tags(tag: str) -> None:
    assert is_tag(tag)


@pytest.mark.parametrize("tag", ["", "*", "d", "german", "de_DE", "de-", "zh--Hant", "de\n"])
def test_other_strings_are_not(tag: str) -> None:
    assert not is_tag(tag)


def test_a_pair_needs_a_target() -> None:
    with pytest.raises(ValidationError, match="targets"):
        Languages(source="en", targets=())
