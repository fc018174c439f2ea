"""Sentences of a translation are joined as its language writes them."""

import pytest

from dragoman_protocols.languages import Pair, language
from dragoman_protocols.translation import Format
from dragoman_service.text.blanks import spaced
from dragoman_service.text.segmented_text import Preparation, prepare

CHINESE = "今天天气很好。我们去公园吧！你觉得呢？"
ENGLISH = "It is sunny. We go to the park! What do you think?"


def joined(text: str, source: str, target: str, outputs: list[str], **how: object) -> str:
    preparation = Preparation(200, lang=source, by_sentence=True, **how)  # type: ignore[arg-type]
    document = spaced(prepare(text, preparation), Pair(language(source), language(target)))
    assert len(document.segments) == len(outputs)
    return document.rejoin(outputs)


@pytest.mark.parametrize("target", ["en", "ko", "de", "th", "ar"])
def test_a_blank_comes_between_sentences_whose_source_has_none(target: str) -> None:
    assert joined(CHINESE, "zh-Hans", target, ["A.", "B!", "C?"]) == "A. B! C?"
    assert joined("今日は晴れです。散歩に行きます。", "ja", target, ["A.", "B."]) == "A. B."


@pytest.mark.parametrize("target", ["zh", "zh-Hant", "ja", "yue"])
def test_chinese_and_japanese_sentences_follow_one_another(target: str) -> None:
    assert joined(ENGLISH, "en", target, ["甲。", "乙！", "丙？"]) == "甲。乙！丙？"


@pytest.mark.parametrize(("source", "target"), [("zh-Hans", "ja"), ("ja", "zh-Hant"), ("en", "de")])
def test_what_the_source_writes_stays_where_both_languages_write_the_same(source: str, target: str) -> None:
    assert joined("甲。 乙。丙。", source, target, ["a", "b", "c"]) == "a bc"
    assert joined("A one. B two.", source, target, ["a", "b"]) == "a b"


def test_blanks_of_thai_stay_in_a_language_that_has_them_too() -> None:
    assert joined("A one. B two.", "th", "fr", ["a", "b"]) == "a b"


def test_line_breaks_tags_and_other_blanks_stay() -> None:
    assert joined("One.\n Two.  Three.", "en", "zh", ["甲", "乙", "丙"]) == "甲\n 乙  丙"
    assert joined(" 一。\n二。", "zh", "en", ["a", "b"]) == " a\nb"


@pytest.mark.parametrize(
    ("chinese", "english"),
    [
        ("<p>一。<b>二。</b></p><p>三。</p>", "<p>A. <b>B.</b></p><p>C.</p>"),
        ("<b>一。</b>二。<br>三。", "<b>A.</b> B.<br>C."),
        ('<b>一。</b><i title="> 1">二。</i>三。', '<b>A.</b> <i title="> 1">B.</i> C.'),
    ],
)
def test_a_blank_is_between_inline_tags_and_not_where_a_tag_ends_a_paragraph(
    chinese: str, english: str
) -> None:
    assert joined(chinese, "zh", "en", ["A.", "B.", "C."], format=Format.HTML) == english
    back = joined(english, "en", "zh", ["一。", "二。", "三。"], format=Format.HTML)
    assert back == chinese


def test_a_word_that_is_longer_than_a_segment_gets_no_blank() -> None:
    word = "x" * 300
    assert joined(f"{word}。", "zh", "en", [word[:150], f"{word[150:]}."]) == f"{word}."


def test_a_text_of_one_segment_stays() -> None:
    assert joined(" 一。 ", "zh", "en", ["A."]) == " A. "
