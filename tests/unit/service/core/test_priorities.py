import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.languages import Pair, language
from dragoman_service.core.priorities import (
    MAX_PAIRS,
    MAX_PATIENCE_S,
    MIN_EVIDENCE,
    PATIENCE_S_PER_TOKEN,
    Lengths,
    ShortestFirst,
    priority,
)

PAIR = Pair(language("en"), language("de"))


def test_of_two_that_come_together_the_shorter_is_first() -> None:
    assert priority(5.0, 10) < priority(5.0, 20)


def test_of_two_as_long_the_first_to_come_is_first() -> None:
    assert priority(5.0, 10) < priority(5.1, 10)


@given(
    arrived_s=st.floats(0, 1e6),
    tokens=st.floats(0, 1e6),
    later_s=st.floats(0, 1e6),
    shorter=st.floats(0, 1e6),
)
def test_nothing_that_comes_after_its_patience_passes_a_segment(
    arrived_s: float, tokens: float, later_s: float, shorter: float
) -> None:
    patience_s = min(MAX_PATIENCE_S, PATIENCE_S_PER_TOKEN * tokens)
    assert priority(arrived_s, tokens) <= priority(arrived_s + patience_s + later_s, shorter)


def test_a_ratio_is_independent_of_the_text_around() -> None:
    rng = random.Random(1)
    lengths = Lengths()
    for _ in range(200):
        text = rng.randint(5, 300)
        lengths.learn(40 + text, round(1.8 * text + rng.uniform(-3, 3)))
    assert lengths.ratio == pytest.approx(1.8, abs=0.05)


@pytest.mark.parametrize("count", [0, MIN_EVIDENCE - 1])
def test_little_is_no_evidence(count: int) -> None:
    lengths = Lengths()
    for at in range(count):
        lengths.learn(40 + at * 10, at * 50)
    assert lengths.ratio == 1.0


def test_texts_of_one_length_give_no_ratio() -> None:
    lengths = Lengths()
    for _ in range(100):
        lengths.learn(60, 90)
    assert lengths.ratio == 1.0


def test_pairs_have_their_own_ratio_and_an_end() -> None:
    first = ShortestFirst(clock=lambda: 7.0)
    for at in range(100):
        first.learn(PAIR, 40 + at, 3 * at)
    assert first.ratio(PAIR) == pytest.approx(3, abs=0.01)
    assert first.ratio(Pair(language("de"), language("en"))) == 1.0
    assert first(PAIR, 10) == priority(0.0, 30)
    tags = [f"{a}{b}" for a in "abcdefghijklmnopqrstuvwxyz" for b in "abcdefghijklmnopqrstuvwxyz"]
    many = [Pair(language("en"), language(tag)) for tag in tags if _known(tag)]
    for pair in many * 2:
        first.learn(pair, 50, 50)
    assert len(first._lengths) <= MAX_PAIRS


def _known(tag: str) -> bool:
    try:
        language(tag)
    except Exception:
        return False
    return True
