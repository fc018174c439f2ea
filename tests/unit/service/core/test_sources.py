import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.errors import UnknownLanguageError, UnsupportedPairError
from dragoman_protocols.languages import UNKNOWN, language, sources
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import pair_of
from dragoman_protocols.translation import TranslationRequest
from dragoman_service.core.prepare import detected

FRENCH = "Le chat dort sur le canapé parce qu'il est fatigué."
GERMAN = "Die Katze schläft auf dem Sofa, weil sie müde ist."
SIMPLIFIED = "这个学生买了两本书，然后回家了。"
TRADITIONAL = "這個學生買了兩本書，然後回家了。"
SERVED = (Languages(source="en", targets=("de",)), Languages(source="fr", targets=("de", "en")))


@pytest.mark.parametrize(
    ("text", "target", "served", "found"),
    [
        (FRENCH, "de", SERVED, "fr"),
        (FRENCH, "de", (), "fr"),
        (FRENCH, "fr-CA", (), None),
        (GERMAN, "de", SERVED, None),
        (GERMAN, "de", (), None),
        (SIMPLIFIED, "zh-Hant", (), "zh-Hans"),
        (TRADITIONAL, "zh-Hant", (), None),
        (TRADITIONAL, "zh-TW", (), None),
        (TRADITIONAL, "zh", (), "zh-Hant"),
        (SIMPLIFIED, "zh-CN", (), None),
        ("Ово је реченица на српском језику.", "sr-Latn", (), "sr"),
        ("Ово је реченица на српском језику.", "sr", (), None),
        ("12:30 – 3.5 %", "de", (), None),
        ("Hotel", "de", SERVED, "en"),
    ],
)
def test_the_source_is_detected_among_what_is_served(text, target, served, found) -> None:
    source = detected(text, language(target), served)
    assert (source.pair and source.pair.source.tag) == found
    assert source.confidence is not None
    assert 0 <= source.confidence <= 1


def test_a_text_without_letters_has_no_language() -> None:
    source = detected("12", language("de"), ())
    assert (source.tag, source.confidence, source.pair) == ("und", 0.0, None)


def test_a_language_that_detection_does_not_know_is_taken_where_it_is_the_only_one() -> None:
    only = (Languages(source="chr", targets=("en",)),)
    assert detected("ᎣᏏᏲ ᎣᎩᎾᎵᎢ", language("en"), only).tag == "chr"
    with pytest.raises(UnknownLanguageError, match="name the source language: served are iu, chr"):
        detected(
            "ᎣᏏᏲ",
            language("de"),
            (*only, Languages(source="iu", targets=("de",)), Languages(source="chr", targets=("de",))),
        )


def test_a_pair_without_a_source_is_served_where_its_target_is() -> None:
    assert pair_of(None, "de", offer_of([SERVED])).source is UNKNOWN
    assert pair_of(None, "pt-BR", offer_of([()])).target.tag == "pt-BR"
    assert sources(language("en-GB"), SERVED) == ("fr",)
    assert sources(language("de"), (Languages(source="*", targets=("de",)),)) == ()
    with pytest.raises(UnsupportedPairError, match="auto to it is not served"):
        pair_of(None, "it", offer_of([SERVED]))


async def test_each_text_of_a_list_has_its_own_language(core) -> None:
    translator = core(lambda text, _: {FRENCH: "The cat sleeps on the sofa since it is tired."}[text])
    texts = (FRENCH, "12", "The cat sleeps on the sofa.", "Le")
    translator.check(TranslationRequest(texts, "en"))
    results = await translator.translate(TranslationRequest(texts[:3], "en"))
    assert [result.source_lang for result in results] == ["fr", "und", "en"]
    assert [result.text for result in results[1:]] == ["12", "The cat sleeps on the sofa."]
    assert results[0].confidence > 0.9
    assert len(translator.engine.prompts) == 1


async def test_the_prompt_names_the_language_that_was_detected(core) -> None:
    translator = core(lambda text, _: "这")
    await translator.translate(TranslationRequest((TRADITIONAL,), "zh-Hans"))
    assert "from Chinese (Traditional) into Chinese (Simplified)" in translator.engine.prompts[0].instruction
