"""Languages of short texts."""

from pathlib import Path

import pytest

from dragoman_protocols.detection import NOTHING, detect, shares


def texts_of(name: str) -> list[tuple[str, str]]:
    """The lines of a file, `TAG|TEXT`."""
    lines = Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    return [(tag, text) for tag, bar, text in (line.partition("|") for line in lines) if bar]


LANGUAGES = texts_of("languages.txt")


@pytest.mark.slow
def test_most_short_texts_are_recognised() -> None:
    right = sum(detect(text).tag == tag for tag, text in LANGUAGES)

    assert len(LANGUAGES) == 92
    assert right >= 90


@pytest.mark.slow
def test_most_strings_of_user_interfaces_are_recognised_and_the_others_have_a_low_confidence() -> None:
    strings = texts_of("ui_strings.txt")
    # "Cancelar" is Spanish and Portuguese.
    tags: dict[str, set[str]] = {}
    for tag, text in strings:
        tags.setdefault(text, set()).add(tag)
    found = [(text, detect(text)) for _, text in strings]
    wrong = [each for text, each in found if each.tag not in tags[text]]
    likely = [each for _, each in found if each.confidence >= 0.5]

    assert len(strings) == 489
    assert len(wrong) <= 75
    assert len(likely) >= 390
    assert sum(each.confidence >= 0.5 for each in wrong) <= 34


@pytest.mark.parametrize("text", ["", " \n", "123,45 €", "!!!", "https://example.com/page", "👍"])
def test_text_without_words_says_nothing(text: str) -> None:
    assert detect(text) == NOTHING
    assert shares(text) == {}


def test_confidence_is_a_probability() -> None:
    assert all(0 <= detect(text).confidence <= 1 for _, text in LANGUAGES)
    assert sum(shares("Guten Morgen").values()) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(("text", "tag"), [("这是一个问题。", "zh-Hans"), ("這是一個問題。", "zh-Hant")])
def test_variants_of_chinese_are_detected_by_their_characters(text: str, tag: str) -> None:
    assert detect(text).tag == tag


def test_long_texts_take_no_longer() -> None:
    assert detect("Das Wetter ist heute schön. " * 40_000).tag == "de"


def test_a_text_after_a_table_of_numbers_is_found() -> None:
    assert detect("1 234,5\n" * 500 + "Das Wetter ist heute schön.").tag == "de"


def test_letter_case_does_not_matter() -> None:
    assert detect("EINSTELLUNGEN") == detect("einstellungen")
    assert detect("İptal").tag == "tr"
