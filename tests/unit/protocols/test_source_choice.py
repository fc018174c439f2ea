"""The language that a text is translated from if none is named."""

from pathlib import Path

import pytest

from dragoman_protocols.errors import UnknownLanguageError, UnsupportedPairError
from dragoman_protocols.source_choice import NO_LETTERS, choose_source, hint_of, sample_of

SPANISH = "El gato duerme en el sofá porque está cansado."
FRENCH = "Le chat dort sur le canapé parce qu'il est fatigué."
GERMAN = "Die Katze schläft auf dem Sofa, weil sie müde ist."
STRINGS = [
    (line.partition("|")[0], line.partition("|")[2])
    for line in Path(__file__).with_name("ui_strings.txt").read_text(encoding="utf-8").splitlines()
]


def test_a_language_that_is_not_served_is_named() -> None:
    with pytest.raises(
        UnsupportedPairError, match=r"Spanish \(es\).*not translated into en here; served are fr"
    ):
        choose_source(SPANISH, ("fr",), ("en",))
    assert choose_source(SPANISH, (), ("en",)).tag == "es"


@pytest.mark.slow
@pytest.mark.parametrize(("source", "target"), [("fr", "en"), ("en", "de"), ("de", "it")])
def test_short_strings_of_languages_that_are_not_served_are_never_sure(source: str, target: str) -> None:
    own = {text for tag, text in STRINGS if tag in (source, target)}
    silent = 0
    for tag, text in STRINGS:
        try:
            found = choose_source(text, (source,), (target,))
        except UnsupportedPairError:
            assert tag not in (source, target), text
            continue
        if tag == source:
            assert found.tag == source
        if text not in own and found.is_likely:
            silent += 1
    # Such as "Cancelar" for Portuguese and Spanish, where English is served.
    assert silent <= 20


def test_a_single_word_is_taken_for_the_only_language_that_is_served() -> None:
    found = choose_source("Save", ("en",), ("de",))
    assert (found.tag, found.is_target) == ("en", False)
    assert found.confidence < 0.9


def test_a_word_is_not_taken_for_the_target_language_without_evidence() -> None:
    for text in ("Danke", "Merci", "Guardar", "Ayarlar"):
        assert not choose_source(text, (), ("da",)).is_target
    assert choose_source("Danke", (), ("da",)).tag == "de"
    assert choose_source("Datei nicht gefunden", (), ("de",)).is_target
    assert choose_source("Datei nicht gefunden", ("en",), ("de",)).is_target


@pytest.mark.parametrize("text", ["Desa", "test", "Tak"])
def test_what_cannot_be_told_is_a_guess_and_refused_where_findings_are(text: str) -> None:
    assert not choose_source(text, (), ("en",)).is_likely
    expected = r"could not be detected \(closest: .*\); name the source language"
    with pytest.raises(UnknownLanguageError, match=expected):
        choose_source(text, (), ("en",), strict=True)
    assert choose_source(text, ("en",), ("de",), strict=True).tag == "en"


@pytest.mark.parametrize(
    ("text", "sources", "target", "expected"),
    [
        ("Kde je železničná stanica?", ("en", "sk"), "de", "sk"),
        ("Bom dia", ("en", "pt-BR"), "de", "pt-BR"),
        ("Bom dia", ("pt-PT", "pt-BR"), "de", "pt-PT"),
        ("我们去火车站。", ("zh",), "en", "zh"),
        ("我們去火車站。", ("zh-Hans", "zh-Hant"), "en", "zh-Hant"),
        ("我们去火车站。", (), "zh-Hant", "zh-Hans"),
        ("取消", ("zh-Hant",), "en", "zh-Hant"),
        ("Hvor er togstasjonen?", ("nb", "en"), "de", "nb"),
        ("ᎣᏏᏲ ᎣᎩᎾᎵᎢ", ("chr",), "en", "chr"),
        ("Aloha kakahiaka", ("haw",), "en", "haw"),
    ],
)
def test_the_source_is_the_tag_that_is_served(
    text: str, sources: tuple[str, ...], target: str, expected: str
) -> None:
    assert choose_source(text, sources, (target,)).tag == expected


def test_a_text_in_the_target_language_stays_and_another_script_of_it_does_not() -> None:
    assert choose_source(FRENCH, (), ("fr-CA",)).is_target
    assert choose_source("Ово је реченица на српском језику.", (), ("sr",)).is_target
    assert not choose_source("Ово је реченица на српском језику.", (), ("sr-Latn",)).is_target


def test_text_without_letters_has_no_language() -> None:
    for text in ("12:30 – 3.5 %", "<b>12</b>", "👍"):
        assert choose_source(text, (), ("de",)) == NO_LETTERS


def test_the_other_texts_of_a_request_tell_what_a_word_is() -> None:
    page = ("Startseite", "Guten Morgen", GERMAN, "Danke", "Datei löschen")
    hint = hint_of(page)
    assert hint == "de"
    alone, beside = (choose_source("Danke", (), ("fr",), each) for each in (None, hint))
    assert (beside.tag, beside.is_likely) == ("de", True)
    assert beside.confidence > alone.confidence
    assert choose_source(FRENCH, (), ("da",), hint).tag == "fr"


def test_texts_in_several_languages_give_no_hint() -> None:
    assert hint_of((FRENCH, GERMAN, SPANISH)) is None
    assert hint_of((GERMAN,)) is None
    assert hint_of(("1", "2")) is None


def test_a_sample_of_many_texts_is_short() -> None:
    assert len(sample_of(["word " * 1000] * 100_000)) < 3000
    assert sample_of([GERMAN]) == GERMAN
