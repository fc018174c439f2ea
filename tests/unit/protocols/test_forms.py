"""Forms and queries: the fields that urllib would find, at a bounded cost."""

from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.errors import MalformedRequestError
from dragoman_protocols.forms import field_of, fields_of, unquoted


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


def test_one_field_is_found_without_the_others() -> None:
    encoded = b"xkey=1&key=a%2Db&key=2&" + b"&" * 100_000
    assert field_of(encoded, "key", 100) == "a-b"
    assert field_of(encoded, "other", 100) is None
    assert field_of(b"key=" + b"a" * 1000, "key", 100) == "a" * 100


@pytest.mark.parametrize(
    ("encoded", "message"),
    [(b"&" * 4, "more than 4 fields"), (b"a=\xff", "is not UTF-8"), (b"a=%ff", "is not UTF-8")],
)
def test_errors_name_the_cause(encoded: bytes, message: str) -> None:
    with pytest.raises(MalformedRequestError, match=f"the form (has )?{message}"):
        fields_of(encoded, 4, "form")
