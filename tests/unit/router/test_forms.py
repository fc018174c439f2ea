"""Forms and queries: the fields that urllib would find, at a bounded cost."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_router.dialects.asking import _tag, tag
from dragoman_router.dialects.forms import field_of, fields_of, unquoted
from dragoman_router.errors import InvalidFieldError, MalformedRequestError
from dragoman_router.routing.deployments import Deployment
from dragoman_router.routing.pairs import REMEMBERED_TARGETS, PairIndex


@given(st.lists(st.tuples(st.text(max_size=8), st.text(max_size=30)), max_size=8))
def test_what_clients_encode_is_what_is_found(pairs: list[tuple[str, str]]) -> None:
    encoded = urlencode(pairs, errors="replace")
    found = fields_of(encoded.encode(), 100, "form")
    flat = [(name, value) for name, values in found.items() for value in values]
    assert sorted(flat) == sorted(parse_qsl(encoded, keep_blank_values=True))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"a+b%20c", "a b c"),
        (b"%C3%A9\xc3\xa9", "éé"),
        (b"\\x41%5cn\\n", "\\x41\\n\\n"),
        (b"%ff", "�"),
        (b"100% of %41", "100% of %41"),
        (b"%", "%"),
    ],
)
def test_a_value_as_text(value: bytes, text: str) -> None:
    assert unquoted(value) == text


def test_one_field_is_found_without_the_others() -> None:
    encoded = b"xkey=1&key=a%2Db&key=2&" + b"&" * 100_000
    assert field_of(encoded, "key", 100) == "a-b"
    assert field_of(encoded, "other", 100) is None
    assert field_of(b"key=" + b"a" * 1000, "key", 100) == "a" * 100


@pytest.mark.parametrize(
    ("encoded", "said"), [(b"&" * 4, "more than 4 fields"), (b"a=\xff", "cannot be read")]
)
def test_what_is_wrong_is_said(encoded: bytes, said: str) -> None:
    with pytest.raises(MalformedRequestError, match=f"the form {said}|the form has {said}"):
        fields_of(encoded, 4, "form")


def test_no_long_code_is_remembered() -> None:
    """4,096 of them could be as long as bodies are."""
    before = _tag.cache_info().currsize
    assert tag("de" + " " * 1_000_000, "target") == tag(" de", "target")
    assert _tag.cache_info().currsize <= before + 1
    with pytest.raises(InvalidFieldError):
        tag("en" + "-aaaaaaaa" * 4, "target")


def test_no_long_list_of_targets_is_remembered() -> None:
    index = PairIndex()
    index.put(Deployment("default/a"))
    index.find("en", tuple(f"a{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"))
    assert not index._matches
    index.find("en", ("de",) * REMEMBERED_TARGETS)
    assert len(index._matches) == 1
