from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_bench.loads import MAX_TOKENS, MIN_TOKENS, UNIFORM, UNIFORM_TOKENS, VARIABLE, counted
from dragoman_bench.vocabulary import Vocabulary

WORDS = Vocabulary(("the", "cat"), tuple(f"w{n}" for n in range(200)), tuple(range(200)))


@given(st.integers())
def test_a_texts_last_word_leaves_as_many_words_as_its_answer_has_before_its_end(seed: int) -> None:
    for request in islice(counted(VARIABLE, WORDS, seed), 20):
        words = request.text.split()
        assert request.output_tokens is not None
        assert MIN_TOKENS <= request.output_tokens <= MAX_TOKENS
        assert len(words) == request.output_tokens
        # The chain goes on from the last word to the 200th, and then to the end of text.
        assert len(WORDS.target) - WORDS.target.index(words[-1]) == request.output_tokens


def test_uniform_is_one_length_and_variable_is_85_on_average() -> None:
    uniform = {request.output_tokens for request in islice(counted(UNIFORM, WORDS, 1), 100)}
    assert uniform == {UNIFORM_TOKENS}
    lengths = [request.output_tokens or 0 for request in islice(counted(VARIABLE, WORDS, 1), 5000)]
    assert sum(lengths) / len(lengths) == pytest.approx(85, rel=0.05)


def test_the_same_seed_gives_every_arm_the_same_requests() -> None:
    assert list(islice(counted(VARIABLE, WORDS, 3), 50)) == list(islice(counted(VARIABLE, WORDS, 3), 50))
    assert list(islice(counted(VARIABLE, WORDS, 3), 50)) != list(islice(counted(VARIABLE, WORDS, 4), 50))
