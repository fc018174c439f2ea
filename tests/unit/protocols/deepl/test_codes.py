import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.deepl import codes
from dragoman_protocols.errors import InvalidFieldError, UnknownLanguageError
from dragoman_protocols.offer import Offer, offer_of

EVERY = offer_of([()])


def served(**targets: str) -> Offer:
    return offer_of(
        [tuple(Languages(source=source, targets=tuple(listed.split())) for source, listed in targets.items())]
    )


@pytest.mark.parametrize(
    ("code", "tag"),
    [
        ("DE", "de"),
        ("de", "de"),
        ("NB", "nb"),
        ("EN", "en"),
        ("EN-US", "en-US"),
        ("en-gb", "en-GB"),
        ("PT-BR", "pt-BR"),
        ("PT-PT", "pt-PT"),
        ("ZH", "zh"),
        ("ZH-HANS", "zh-Hans"),
        ("zh-hant", "zh-Hant"),
        ("ES-419", "es-419"),
    ],
)
def test_targets_keep_their_variants(code: str, tag: str) -> None:
    assert codes.target_tag(code, EVERY) == tag


def test_english_is_plain_where_no_variant_is_listed() -> None:
    assert codes.target_tag("EN-US", served(de="en fr")) == "en"
    assert codes.target_tag("EN-US", served(de="en en-US")) == "en-US"
    assert codes.target_tag("EN-GB", served(de="*")) == "en-GB"
    assert codes.target_tag("EN-GB", served(de="* en")) == "en"
    assert codes.target_tag("PT-BR", served(de="pt")) == "pt-BR"


def test_a_source_is_the_first_variant_where_only_variants_are_listed() -> None:
    assert codes.source_tag("ZH", served(**{"zh-Hans": "en", "zh-Hant": "en"})) == "zh-Hans"
    assert codes.source_tag("ZH", served(**{"zh-Hans": "en", "zh": "en"})) == "zh"
    assert codes.source_tag("ZH", served(**{"*": "en", "zh-Hans": "en"})) == "zh"
    assert codes.source_tag("EN", served(en="de")) == "en"
    assert codes.source_tag("NL", served(en="de")) == "nl"


def test_chinese_without_a_variant_is_simplified_where_that_is_listed() -> None:
    assert codes.target_tag("ZH", served(en="zh-Hans zh-Hant")) == "zh-Hans"
    assert codes.target_tag("ZH", served(en="zh zh-Hans")) == "zh"
    assert codes.target_tag("ZH", served(en="zh-Hant")) == "zh"
    assert codes.target_tag("ZH-HANT", served(en="zh-Hans")) == "zh-Hant"
    listed = [each["language"] for each in codes.targets(served(en="zh-Hans zh-Hant"))]
    assert listed == ["ZH", "ZH-HANS", "ZH-HANT"]
    assert [each["language"] for each in codes.targets(served(en="zh-Hant"))] == ["ZH-HANT"]


@pytest.mark.parametrize("code", ["EN-US", "ZH-HANT", "AUTO", "*", "E", "", "DE\x00", "\ud800", "x" * 99])
def test_what_is_no_source_is_refused_with_the_message_that_clients_expect(code: str) -> None:
    with pytest.raises(InvalidFieldError, match=r"^Value for 'source_lang' not supported\.$"):
        codes.source_tag(code, EVERY)


@pytest.mark.parametrize(
    ("tag", "code"), [("en", "EN"), ("en-US", "EN"), ("zh-Hant", "ZH"), ("nb", "NB"), ("no", "NB")]
)
def test_the_code_of_a_source_has_no_variant(tag: str, code: str) -> None:
    assert codes.source_code(tag) == code


def test_languages_are_listed_as_they_can_be_requested() -> None:
    listed = served(en="de pt zh", de="en")
    assert [each["language"] for each in codes.sources(listed)] == ["DE", "EN"]
    assert [(each["language"], each["supports_formality"]) for each in codes.targets(listed)] == [
        ("DE", True),
        ("EN-GB", False),
        ("EN-US", False),
        ("PT-BR", True),
        ("PT-PT", True),
        ("ZH", False),
        ("ZH-HANS", False),
        ("ZH-HANT", False),
    ]


@pytest.mark.parametrize("listed", [EVERY, served(en="de fr-CA", de="en-GB"), served(**{"*": "nb"})])
def test_every_language_that_is_listed_can_be_requested(listed: Offer) -> None:
    for language in codes.sources(listed):
        codes.source_tag(language["language"], listed)
    for language in codes.targets(listed):
        codes.target_tag(language["language"], listed)
    for pair in codes.glossary_pairs(listed):
        assert codes.glossary_language(pair["source_lang"]) == pair["source_lang"]
        assert codes.glossary_language(pair["target_lang"].upper()) == pair["target_lang"]


def test_glossaries_know_no_variants() -> None:
    assert codes.glossary_pairs(served(en="pt-BR pt-PT en-GB")) == [
        {"source_lang": "en", "target_lang": "pt"}
    ]
    with pytest.raises(UnknownLanguageError, match="is a variant"):
        codes.glossary_language("PT-BR")
