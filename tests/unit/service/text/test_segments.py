"""Cutting texts into segments, and putting them together again."""

import time

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from dragoman_service.text.segments import Segments, sentences, split

LINE_ENDS = ["\n", "\r\n", "\r", "\n\n", "\t", "\u00a0", "\u2028", "\x85", " "]
WORDS = [
    "Hello",
    "world.",
    "Ünï",
    "你好。",
    "今日は",
    "नमस्ते।",
    "مرحبا؟",
    "e.g.",
    "3.5",
    ",",
    "—",
    "👩‍👩‍👧",
    "«Oui»",
    "\ud800",
]

texts = st.lists(st.sampled_from(WORDS + LINE_ENDS) | st.text(max_size=4), max_size=40).map("".join)


def characters(text: str) -> int:
    return len(text)


def joined(segments: Segments) -> str:
    pairs = zip(segments.separators, (*segments.texts, ""), strict=True)
    return "".join(separator + text for separator, text in pairs)


@given(
    texts, st.integers(1, 60), st.booleans(), st.booleans(), st.sampled_from(["en", "zh-Hans", "ne", "xx"])
)
def test_rejoined_segments_are_the_text(
    text: str, budget: int, by_line: bool, by_sentence: bool, lang: str
) -> None:
    segments = split(text, budget, characters, lang=lang, by_line=by_line, by_sentence=by_sentence)

    assert joined(segments) == text
    assert all(segment and segment == segment.strip() for segment in segments.texts)
    assert all(
        len(segment) <= budget or len(regex.findall(r"\X", segment)) == 1 for segment in segments.texts
    )


@pytest.mark.parametrize(
    ("text", "budget", "expected"),
    [
        ("One line.\n\n\tAnother line. \r\n", 100, ["One line.", "Another line."]),
        ("First sentence. Second one. Third.", 30, ["First sentence. Second one.", "Third."]),
        ("A clause, another clause, a third", 20, ["A clause,", "another clause,", "a third"]),
        ("one two three four", 10, ["one two", "three four"]),
        ("abcdefgh", 4, ["abcd", "efgh"]),
        ("今天天气很好。我们去公园吧！", 8, ["今天天气很好。", "我们去公园吧！"]),
        ("1.\n---\n***\n2,000\nWord", 100, ["Word"]),
        (" \u00a0\t\n ", 100, []),
        ("", 100, []),
    ],
)
def test_larger_units_come_first(text: str, budget: int, expected: list[str]) -> None:
    assert list(split(text, budget, characters, lang="zh" if "天" in text else "en").texts) == expected


def test_each_sentence_can_be_a_segment() -> None:
    segments = split("Dr. Smith came.  He left.", 1000, characters, by_sentence=True)

    assert segments == Segments(("Dr. Smith came.", "He left."), ("", "  ", ""))


def test_lines_can_run_on() -> None:
    assert split("a wrapped\nsentence", 100, characters, by_line=False).texts == ("a wrapped\nsentence",)


def test_atoms_are_never_cut() -> None:
    segments = split("aaaa<x1/>bbbb<x22/>", 4, characters, atom=r"<x\d+/>")

    assert [text for text in segments.texts if "<" in text] == ["<x1/>", "<x22/>"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lang", "unit"),
    [
        ("en", "He said it. "),
        ("zh", "今天天气很好。"),
        ("en", "a"),
        ("en", '"'),
        ("en", ".\n"),
        ("en", "word "),
        ("ja", "「行こう。」"),
    ],
)
def test_time_grows_linearly(lang: str, unit: str) -> None:
    def cpu_s(characters_in_all: int) -> float:
        text = unit * (characters_in_all // len(unit))
        before = time.process_time()
        assert joined(split(text, 400, characters, lang=lang)) == text
        return time.process_time() - before

    # 16 times as long if it were quadratic; the least of two, as a collection of garbage may come in between.
    assert min(cpu_s(100_000), cpu_s(100_000)) < 8 * min(cpu_s(25_000), cpu_s(25_000)) + 0.5


def test_sentences_keep_a_lone_surrogate() -> None:
    assert sentences("One \ud800. Two.") == ["One \ud800. ", "Two."]
