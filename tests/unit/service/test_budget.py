import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.errors import TextTooLongError
from dragoman_service.engine.protocol import output_budget


def test_a_short_segment_gets_room_for_a_phrase() -> None:
    assert output_budget(prompt_tokens=30, segment_tokens=1, max_model_len=4096) == 72


def test_what_fits_bounds_what_is_plausible() -> None:
    assert output_budget(prompt_tokens=600, segment_tokens=400, max_model_len=1024) == 424


def test_without_room_for_a_text_as_long_it_is_refused_with_numbers() -> None:
    with pytest.raises(TextTooLongError, match=r"630 tokens .* about 600, over the 1024"):
        output_budget(prompt_tokens=630, segment_tokens=600, max_model_len=1024)


def test_a_prompt_over_what_the_model_was_made_for_is_refused() -> None:
    assert output_budget(2048, 10, 100_000, max_prompt_tokens=2048) == 144
    with pytest.raises(TextTooLongError, match=r"2049 tokens.* at most 2048"):
        output_budget(2049, 10, 100_000, max_prompt_tokens=2048)


@given(st.integers(1, 5000), st.integers(0, 5000), st.integers(1, 8192))
def test_prompt_and_output_always_fit(prompt: int, segment: int, length: int) -> None:
    try:
        budget = output_budget(prompt, segment, length)
    except TextTooLongError:
        assert prompt + max(segment, 16) > length
    else:
        assert segment <= budget
        assert prompt + budget <= length
