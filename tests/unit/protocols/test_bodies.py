"""JSON bodies: what is wrong with them, in words; and what a router reads of them."""

import json
from enum import StrEnum
from typing import Annotated, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import InvalidFieldError, MalformedRequestError


class Tone(StrEnum):
    MORE = "more"
    LESS = "less"


class Term(Struct, forbid_unknown_fields=True):
    source: Annotated[str, Meta(min_length=1, max_length=5)]
    target: str


class Body(Struct, forbid_unknown_fields=True):
    text: str | list[str]
    tone: Tone = Tone.MORE
    terms: list[Term] = []
    number: Annotated[int, Meta(ge=0, le=9)] = 0
    seconds: Annotated[float, Meta(gt=0)] | None = None
    kind: Literal["a", "b"] | None = None
    renamed: bool = msgspec.field(default=False, name="isOther")


DECODER = msgspec.json.Decoder(Body)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{}", "text is required"),
        (b"[]", "the body must be a JSON object with text"),
        (b'{"text": 1}', "text must be a string or a list of strings"),
        (b'{"text": ["a", 1]}', "text[1] must be a string"),
        (b'{"text": "a", "tune": 1}', "'tune' is no field of this request"),
        (b'{"text": "a", "tone": "no"}', "tone must be one of more, less"),
        (b'{"text": "a", "kind": "no"}', "kind must be one of a, b"),
        (b'{"text": "a", "terms": [{"source": "a"}]}', "terms[0].target is required"),
        (b'{"text": "a", "terms": [{"source": "", "target": ""}]}', "terms[0].source must not be empty"),
        (
            b'{"text": "a", "terms": [{"source": "aaaaaa", "target": ""}]}',
            "terms[0].source must have at most 5 characters",
        ),
        (b'{"text": "a", "number": 10}', "number must be at most 9"),
        (b'{"text": "a", "number": -1}', "number must be at least 0"),
        (b'{"text": "a", "seconds": 0}', "seconds must be greater than 0"),
        (b'{"text": "a", "isOther": null}', "isOther must be true or false"),
    ],
)
def test_a_wrong_field_is_named(body: bytes, message: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        read_json(body, DECODER)
    assert str(refused.value) == message


@pytest.mark.parametrize("body", [b"", b"{", b'{"text": "\xff"}', b"[" * 100_000])
def test_what_is_no_json_is_malformed(body: bytes) -> None:
    with pytest.raises((MalformedRequestError, InvalidFieldError)):
        read_json(body, DECODER)


@pytest.mark.parametrize("value", [b'""', b'"a" ', b'"\\\\"', b'"\\""', b'"\\\\\\\\"', b"{}", b"[]"])
def test_very_many_values_are_not_decoded(value: bytes) -> None:
    with pytest.raises(MalformedRequestError, match="more than"):
        read_json(b'{"text": [' + (value + b",") * 100_000 + b'""]}', DECODER)


@pytest.mark.parametrize(
    "text",
    ['"id","Hello"\n' * 5000, '{"a": "b", "c": "d"}' * 5000, 'path("C:\\", "\\\\")\n' * 5000],
    ids=["csv", "json", "code"],
)
def test_quotes_in_a_text_are_no_values(text: str) -> None:
    assert read_json(json.dumps({"text": text}).encode(), DECODER).text == text
