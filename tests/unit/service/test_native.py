import json
from typing import Any

import pytest

from dragoman_service import errors
from dragoman_service.dialects.native import parse, render_error, status_of
from dragoman_service.errors import CallerError, InvalidFieldError, MalformedRequestError, ServiceError
from dragoman_service.translate import Translation

PAIR = {"source_lang": "en", "target_lang": "de"}


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_one_text_and_several_are_told_apart() -> None:
    assert parse(body(text="a", **PAIR), 10) == (Translation(("a",), "en", "de"), False)
    assert parse(body(text=["a"], **PAIR), 10) == (Translation(("a",), "en", "de"), True)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"text": "\xff"}', "not UTF-8 (byte 10)"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"text": "\\ud800"}', "not JSON"),
        (b"\xfe\xff\x00{", "not UTF-8"),
    ],
)
def test_what_is_no_json_in_utf8_is_malformed(raw: bytes, said: str) -> None:
    with pytest.raises(MalformedRequestError) as refused:
        parse(raw, 10)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (body(text=3, **PAIR), "text must be a string or a list of strings"),
        (body(text=["a", None], **PAIR), "text[1] must be a string"),
        (body(text={"a": 1}, **PAIR), "text must be a string or a list of strings"),
        (body(text="a", source_lang="en"), "target_lang is required"),
        (body(text="a", source_lang=1, target_lang="de"), "source_lang must be a string"),
        (body(text="a", tone="formal", **PAIR), "'tone' is no field of this request"),
        (body(), "text is required; source_lang is required; target_lang is required"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (body(text=["a"] * 11, **PAIR), "11 texts in one request; send at most 10"),
    ],
)
def test_fields_that_do_not_fit_are_named(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse(raw, 10)
    assert str(refused.value) == said or said in str(refused.value)


def test_a_thousand_mistakes_are_not_all_told() -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse(body(text=[1] * 1000, **PAIR), 2000)
    assert len(str(refused.value)) < 300


def all_errors(root: type[ServiceError] = ServiceError) -> list[type[ServiceError]]:
    return [root, *(below for child in root.__subclasses__() for below in all_errors(child))]


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    found = all_errors()
    assert len(found) > 15
    assert len({error.code for error in found}) == len(found)
    for error in found:
        assert 400 <= status_of(error("x")) <= 599
        assert (status_of(error("x")) < 500) is issubclass(error, CallerError)


def test_capacity_says_when_to_come_back() -> None:
    answer = render_error(errors.DrainingError("leaving", retry_after_s=7))
    assert (answer.status_code, answer.headers["retry-after"], answer.headers["connection"]) == (
        503,
        "7",
        "close",
    )
    assert json.loads(answer.body) == {"error": {"code": "draining", "message": "leaving"}}
