"""`make search` draws new examples; `make check` and `make test` repeat theirs."""

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

UNIT = Path(__file__).parent


def drawn(profile: str) -> list[int]:
    """The examples that one run with a profile tries."""
    found: list[int] = []

    @settings(settings.get_profile(profile), max_examples=20)
    @given(st.integers())
    def test_number(number: int) -> None:
        found.append(number)

    test_number()
    return found


def test_two_searches_draw_different_examples() -> None:
    assert drawn("search") != drawn("search")


@pytest.mark.parametrize("profile", ["check", "test"])
def test_other_runs_repeat_their_examples(profile: str) -> None:
    assert drawn(profile) == drawn(profile)


def test_no_property_sets_what_the_profiles_set() -> None:
    fixed = {"derandomize", "max_examples", "deadline", "database"}
    for file in UNIT.rglob("test_*.py"):
        source = file.read_text()
        if file == Path(__file__) or "settings(" not in source:
            continue
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "settings":
                assert not fixed & {keyword.arg for keyword in node.keywords}, f"{file}:{node.lineno}"
