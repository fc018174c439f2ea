import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import UnknownLanguageError, UnsupportedPairError
from dragoman_protocols.languages import language, listing, pair

EUROPEAN = (Languages(source="en", targets=("de", "pt-BR")), Languages(source="de", targets=("en",)))


@pytest.mark.parametrize(
    ("tag", "named"),
    [
        ("en", ("en", "en", "English", "英语")),
        ("NE", ("ne", "ne", "Nepali", "尼泊尔语")),
        ("zh", ("zh", "zh", "Chinese", "中文")),
        ("zh-hant", ("zh-Hant", "zh", "Chinese (Traditional)", "中文（繁体）")),
        ("pt-br", ("pt-BR", "pt", "Portuguese (Brazil)", "葡萄牙语（巴西）")),
        ("iw", ("he", "he", "Hebrew", "希伯来语")),
    ],
)
def test_languages_are_named_in_english_and_chinese(tag: str, named: tuple[str, ...]) -> None:
    found = language(tag)
    assert (found.tag, found.code, found.english, found.chinese) == named


@pytest.mark.parametrize("tag", ["", "*", "english", "xx", "e", "de_DE", "de-", "zz", "en\n", "de" * 40])
def test_what_names_no_language_is_refused(tag: str) -> None:
    with pytest.raises(UnknownLanguageError):
        language(tag)


def test_chinese_is_chinese_in_all_its_forms_but_not_cantonese() -> None:
    assert [language(tag).is_chinese for tag in ("zh", "zh-Hant", "zh-TW", "cmn", "yue", "ja")] == [
        True,
        True,
        True,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("en-GB", "de"), ("EN", "pt-br"), ("de", "en")])
def test_a_listed_pair_is_served(source: str, target: str) -> None:
    found = pair(source, target, EUROPEAN)
    assert (found.source, found.target) == (language(source), language(target))


@pytest.mark.parametrize(("source", "target"), [("en", "fr"), ("fr", "de"), ("en", "pt"), ("de", "de")])
def test_another_pair_is_refused_with_what_is_served(source: str, target: str) -> None:
    with pytest.raises(UnsupportedPairError, match="served are en to de, pt-BR; de to en"):
        pair(source, target, EUROPEAN)


def test_every_pair_is_served_where_none_is_listed_but_not_into_itself() -> None:
    assert pair("sw", "ne", ()).target.english == "Nepali"
    with pytest.raises(UnsupportedPairError, match="both en"):
        pair("en", "en", ())


def test_a_deprecated_tag_is_served_under_either_name() -> None:
    assert pair("iw", "en", (Languages(source="he", targets=("en",)),)).source.tag == "he"
    assert pair("iw", "en", (Languages(source="iw", targets=("en",)),)).source.tag == "he"


def test_a_long_list_is_cut() -> None:
    message = listing((Languages(source="en", targets=("de",) * 30),) * 30, most=2)
    assert message == "en to de, de, …; en to de, de, …; …"
