"""Forms and queries: the fields that urllib would find, at a bounded cost."""

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.errors import MalformedRequestError
from dragoman_protocols.forms import fields_of, taken, unquoted


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
        (b"100% of %41", "100% of A"),
        (b"%", "%"),
    ],
)
def test_a_value_as_text(value: bytes, text: str) -> None:
    assert unquoted(value) == text


def test_what_is_taken_from_a_form_is_its_first_value_and_leaves_no_other() -> None:
    encoded = b"xkey=1&k%65y=a%2Db&key=2&q=key"
    assert taken(encoded, {b"key"}, 9, "form") == ({b"key": b"a%2Db"}, b"xkey=1&q=key")
    assert taken(encoded, {b"other"}, 9, "form") == ({}, encoded)
    with pytest.raises(MalformedRequestError, match="more than 3 fields"):
        taken(encoded, {b"key"}, 3, "form")


@pytest.mark.parametrize(
    ("encoded", "message"),
    [(b"&" * 4, "more than 4 fields"), (b"a=\xff", "is not UTF-8"), (b"a=%ff", "is not UTF-8")],
)
def test_errors_name_the_cause(encoded: bytes, message: str) -> None:
    with pytest.raises(MalformedRequestError, match=f"the form (has )?{message}"):
        fields_of(encoded, 4, "form")
