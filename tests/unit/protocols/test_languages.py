import pytest

from dragoman_protocols.errors import UnknownLanguageError
from dragoman_protocols.languages import language, listing


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


def test_a_long_list_is_cut() -> None:
    assert listing(["de", "en", "fr"], most=2) == "de, en, …"
    assert listing(["de", "en"], most=2) == "de, en"
