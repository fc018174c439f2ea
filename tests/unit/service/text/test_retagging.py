"""Tags put back into translations that were made without them."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.translation import Format
from dragoman_service.text.restoring import restore, verify
from dragoman_service.text.retagging import parts, retagged
from dragoman_service.text.segmented_text import Preparation, Segment, prepare
from dragoman_service.text.untagged import answer_to, untagged, without_markers

HTML = Preparation(100_000, format=Format.HTML)
XML = Preparation(1000, format=Format.XML, non_splitting_tags=frozenset({"g", "x"}))


def segment_of(source: str, how: Preparation = HTML) -> Segment:
    (segment,) = prepare(source, how).segments
    return segment


def translated(source: str, answer: str, hints: dict[str, str] | None = None, how: Preparation = HTML) -> str:
    segment = segment_of(source, how)
    plain = untagged(segment)
    found = answer_to(plain, answer)
    assert found is not None
    text = retagged(plain, found, hints or {})
    assert text is not None
    assert verify(segment, text) == ()
    return restore(segment, text)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("The <b>cat</b> sleeps", "The cat sleeps"),
        ("Press <code>x = 1</code> now", "Press now"),
        ("Name<img src=a>Value and <i>more</i>", "Name Value and more"),
        ("Tom &amp; {name} <b>&lt; 5</b> &nosuch; end", "Tom & {name} < 5 &nosuch; end"),
        ("un<b>believ</b>able", "unbelievable"),
    ],
)
def test_a_segment_without_tags_reads_as_its_source(source: str, expected: str) -> None:
    assert " ".join(untagged(segment_of(source)).text.split()) == expected


@pytest.mark.parametrize(
    ("source", "answer", "hints", "expected"),
    [
        ("The <b>cat</b> sleeps.", "Die Katze schläft.", {"cat": "Katze"}, "Die <b>Katze</b> schläft."),
        ("The <b>cat</b> sleeps.", "Die Katze schläft.", {}, "Die <b>Katze</b> schläft."),
        (
            "I bought <b>the red houses</b> yesterday.",
            "Gestern habe ich die roten Häuser gekauft.",
            {"the red houses": "die roten Häuser"},
            "Gestern habe ich <b>die roten Häuser</b> gekauft.",
        ),
        (
            "He lives with <i>the cats</i> in a big house.",
            "In einem großen Haus lebt er mit den Katzen.",
            {"the cats": "die Katzen"},
            "In einem großen Haus lebt er mit den <i>Katzen</i>.",
        ),
        (
            "Read <a href='u'>Kubernetes 1.31</a> first.",
            "Lies zuerst Kubernetes 1.31.",
            {},
            "Lies zuerst <a href='u'>Kubernetes 1.31</a>.",
        ),
        (
            "<b>Note:</b> keep it dry.",
            "Hinweis: trocken halten.",
            {"Note:": "Hinweis:"},
            "<b>Hinweis:</b> trocken halten.",
        ),
        ("The <b>cat</b> sleeps.", "猫在睡觉。", {"cat": "猫"}, "<b>猫</b>在睡觉。"),
        ("这只<b>猫</b>在睡觉。", "The cat is sleeping.", {"猫": "cat"}, "The <b>cat</b> is sleeping."),
        (
            "A <b>big <i>red</i></b> ball, see <a>page 5</a>",
            "Ein großer roter Ball, siehe Seite 5",
            {"big red": "groß rot", "page 5": "Seite 5", "red": "rot"},
            "Ein <b>großer <i>roter</i></b> Ball, siehe <a>Seite 5</a>",
        ),
        (
            "See {name} in <b>{place}</b> now",
            "Jetzt {place} sehen mit {name}",
            {},
            "Jetzt <b>{place}</b> sehen mit {name}",
        ),
        ("The word<img src=a>, here.", "Das Wort, hier.", {}, "Das Wort<img src=a>, hier."),
        ("Go <img src=a> to Berlin now", "Geh jetzt nach Berlin", {}, "Geh jetzt <img src=a> nach Berlin"),
    ],
)
def test_tags_go_where_their_words_went(
    source: str, answer: str, hints: dict[str, str], expected: str
) -> None:
    assert translated(source, answer, hints).replace("  ", " ") == expected.replace("  ", " ")


@pytest.mark.parametrize(
    ("source", "output", "expected"),
    [
        (
            "The dog sees <b>the cat</b> and <i>the bird</i>.",
            "Der Hund sieht <x1>die Katze</x1> und <x2> den Vogel.",
            "Der Hund sieht <b>die Katze</b> und <i>den Vogel</i>.",
        ),
        (
            "The dog sees <b>the cat</b> and <i>the bird</i>.",
            "Der Hund sieht <x1>die Katze <x2>und</x1> den Vogel</x2>.",
            "Der Hund sieht <b>die Katze</b> <i>und den Vogel</i>.",
        ),
        ("The <b>cat</b> sleeps.", "Die <x1></x1> Katze schläft <x7>.", "Die <b>Katze</b> schläft ."),
    ],
)
def test_tags_that_the_model_kept_stay(source: str, output: str, expected: str) -> None:
    segment = segment_of(source)
    plain = untagged(segment)
    answer = without_markers(plain, output)
    assert answer is not None
    text = retagged(plain, answer, {})
    assert text is not None
    assert restore(segment, text) == expected


@pytest.mark.parametrize(
    "output",
    ["Die <b>Katze</b> {name} schläft.", "Die Katze schläft", "Die x1> Katze {name}", "Die X 1 {name}"],
)
def test_tags_of_the_models_own_and_lost_placeholders_are_no_answer(output: str) -> None:
    assert answer_to(untagged(segment_of("The <b>cat</b> {name} sleeps.")), output) is None


def test_an_answer_with_spoilt_markers_is_none() -> None:
    plain = untagged(segment_of("A <b>big</b> cat"))
    assert without_markers(plain, "Eine < x1 große </x1> Katze") is None
    assert without_markers(plain, "Eine x1 große x1 Katze") is None


def test_what_is_found_by_its_words_needs_no_translation_of_its_own() -> None:
    plain = untagged(segment_of("Read <a>Kubernetes</a> on <b>the shelf</b> with <i>{n}</i> friends"))
    answer = answer_to(plain, "Lies Kubernetes im Regal mit {n} Freunden")
    assert answer is not None
    assert parts(plain, answer) == ("the shelf",)


def test_tags_alone_keep_their_order() -> None:
    source = 'One <x id="0"/> two <x id="1"/> three <x id="2"/> four'
    text = translated(source, "Vier drei zwei eins", {}, XML)
    assert [text.index(f'<x id="{number}"/>') for number in range(3)] == sorted(
        text.index(f'<x id="{number}"/>') for number in range(3)
    )


def test_more_elements_than_words_share_the_characters_of_a_word() -> None:
    assert translated("<b>big</b> <i>cat</i> <u>food</u>!", "Katzenfutter", {}).count("<") == 6


def test_a_translation_shorter_than_its_elements_is_none() -> None:
    plain = untagged(segment_of("<b>the</b> <i>cat</i>!"))
    answer = answer_to(plain, "猫")
    assert answer is not None
    assert retagged(plain, answer, {}) is None


def test_deep_elements_and_many_are_bounded() -> None:
    deep = segment_of("a " + "<b>" * 500 + "x y" + "</b>" * 500 + " z")
    plain = untagged(deep)
    answer = answer_to(plain, "u v w x")
    assert answer is not None
    assert parts(plain, answer) == ()
    assert retagged(plain, answer, {}) is None
    many = "".join(f"word{number} <b>text{number}</b> " for number in range(2_000))
    assert translated(many, " ".join(f"Wort{n} Text{n}" for n in range(2_000)), {}).count("<b>") == 2_000


WORDS = ["the", "cat", "Berlin", "42", "{name}", "猫", "ein", "ย", "!", ",", "—", "&amp;", "x", "café"]
BLOCKS = [
    "<b>{}</b>",
    "<i>{}</i>",
    "<a href=u>{}</a>",
    "{}<img src=a>",
    "<b></b>{}",
    "{} <wbr>",
    "<code>x</code>{}",
]
markup = st.recursive(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join),
    lambda inner: (
        st.tuples(st.sampled_from(BLOCKS), inner).map(lambda each: each[0].replace("{}", each[1], 1))
        | st.lists(inner, min_size=1, max_size=4).map(" ".join)
    ),
    max_leaves=10,
)


@given(markup, st.integers(0, 2**32))
def test_tags_come_back_into_any_answer(source: str, seed: int) -> None:
    chance = random.Random(seed)
    for segment in prepare(f"Start {source} end", HTML).segments:
        plain = untagged(segment)
        words = plain.text.split()
        chance.shuffle(words)
        answer = answer_to(plain, " ".join([*words, "mehr", "Wörter"]))
        if answer is None:
            continue
        wanted = parts(plain, answer)
        text = retagged(plain, answer, {part: chance.choice(words) for part in wanted})
        assert text is not None
        assert {problem.fault for problem in verify(segment, text)} == set()
