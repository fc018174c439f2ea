"""Languages of short texts."""

from pathlib import Path

import pytest

from dragoman_protocols.detection import NOTHING, detect, shares

LANGUAGES = [
    line.split("|", 1)
    for line in Path(__file__).with_name("languages.txt").read_text(encoding="utf-8").splitlines()
    if "|" in line
]


@pytest.mark.slow
def test_most_short_texts_are_recognised() -> None:
    right = sum(detect(text).tag == tag for tag, text in LANGUAGES)

    assert len(LANGUAGES) == 92
    assert right >= 88


@pytest.mark.parametrize("text", ["", " \n", "123,45 €", "!!!", "https://example.com/page", "👍"])
def test_text_without_words_says_nothing(text: str) -> None:
    assert detect(text) == NOTHING
    assert shares(text) == {}


def test_confidence_is_a_probability() -> None:
    assert all(0 <= detect(text).confidence <= 1 for _, text in LANGUAGES)
    assert sum(shares("Guten Morgen").values()) == pytest.approx(1, abs=1e-3)


def test_a_text_is_detected_among_the_possible_languages() -> None:
    assert detect("Kde je železničná stanica?", among=["en", "sk"]).tag == "sk"
    assert detect("Bom dia", among=["en", "pt-BR"]).tag == "pt-BR"
    assert detect("Good morning", among=["tlh"]) == NOTHING


@pytest.mark.parametrize(("text", "tag"), [("这是一个问题。", "zh-Hans"), ("這是一個問題。", "zh-Hant")])
def test_variants_of_chinese_are_detected_by_their_characters(text: str, tag: str) -> None:
    assert detect(text).tag == tag


def test_long_texts_take_no_longer() -> None:
    assert detect("Das Wetter ist heute schön. " * 40_000).tag == "de"
