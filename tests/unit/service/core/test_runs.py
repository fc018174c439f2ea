"""Runs in a source that its translation may repeat."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dragoman_service.core.generate import RUN

PLAIN = re.compile(r"(\S{1,3}?)\1{9}")
"""The same without the shortcut."""


@given(st.lists(st.tuples(st.text("ab. ", max_size=4), st.integers(1, 12)), max_size=4))
def test_the_shortcut_misses_no_run(parts: list[tuple[str, int]]) -> None:
    text = "".join(part * times for part, times in parts)
    assert bool(RUN.search(text)) is bool(PLAIN.search(text))
