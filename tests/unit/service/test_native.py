import json
from typing import Any

import pytest

from dragoman_protocols import errors
from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError, RequestError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.translation import (
    Delta,
    Formality,
    Format,
    OnFinding,
    Split,
    TranslationRequest,
    TranslationResult,
    Warned,
)
from dragoman_service.dialects.native import (
    NativeEvents,
    answered,
    parse,
    render_error,
    status_of,
    wanted,
)

PAIR = {"source_lang": "en", "target_lang": "de"}


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_one_text_and_several_are_told_apart() -> None:
    one, several = parse(body(text="a", **PAIR), 10), parse(body(text=["a"], **PAIR), 10)
    assert wanted(one) == wanted(several) == TranslationRequest(("a",), "de", "en")
    result = TranslationResult("b", "en")
    assert answered(one, [result]) == {"translation": "b"}
    assert answered(several, [result]) == {"translation": ["b"]}


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
        (body(), "text is required; target_lang is required"),
        (body(text="a", terms=[{"source": "a"}], **PAIR), "terms[0].target is required"),
        (body(text="a", alternatives=10, **PAIR), "alternatives: Input should be less than or equal to 9"),
        (body(text="a", formality="rude", **PAIR), "formality: Input should be 'default', 'more', 'less'"),
        (body(text="a", timeout_s=0, **PAIR), "timeout_s: Input should be greater than 0"),
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


def all_errors(root: type[RequestError] = RequestError) -> list[type[RequestError]]:
    return [root, *(below for child in root.__subclasses__() for below in all_errors(child))]


def test_every_error_has_a_status_and_a_code_of_its_own() -> None:
    found = all_errors()
    ours = [error for error in found if error.__module__ == "dragoman_protocols.errors"]
    assert len(ours) > 15
    for error in found:
        # Both bounds on queues, the pod's and the router's, have the code `overloaded`.
        alike = [other for other in ours if other.code == error.code != "overloaded" and error in ours]
        assert all(issubclass(other, error) or issubclass(error, other) for other in alike)
        made = error.__new__(error)
        assert 400 <= status_of(made) <= 599
        assert (status_of(made) < 500) is issubclass(error, CallerError)


def test_capacity_says_when_to_come_back() -> None:
    answer = render_error(errors.DrainingError("leaving", retry_after_s=7))
    assert (answer.status_code, answer.headers["retry-after"], answer.headers["connection"]) == (
        503,
        "7",
        "close",
    )
    assert json.loads(answer.body) == {"error": {"code": "draining", "message": "leaving"}}


def test_every_field_reaches_the_core() -> None:
    raw = body(
        text=["a"],
        target_lang="de",
        format="html",
        terms=[{"source": "cat", "target": "Katze", "case_sensitive": True}],
        formality="prefer_less",
        context="a farm",
        instructions=["be brief"],
        alternatives=2,
        ignore_tags=["code"],
        split="no-lines",
        ignore_unsupported=True,
        on_finding="fail",
        timeout_s=2,
    )
    assert wanted(parse(raw, 10)) == TranslationRequest(
        texts=("a",),
        target_lang="de",
        source_lang=None,
        format=Format.HTML,
        split=Split.NO_LINES,
        terms=(Term("cat", "Katze", True),),
        formality=Formality.PREFER_LESS,
        context="a farm",
        instructions=("be brief",),
        alternatives=2,
        ignore_tags=frozenset({"code"}),
        ignore_unsupported=True,
        on_finding=OnFinding.FAIL,
        timeout_s=2.0,
    )


@pytest.mark.parametrize("auto", [{}, {"source_lang": "auto"}, {"source_lang": None}])
def test_a_source_language_that_is_not_given_is_detected_and_answered(auto: dict[str, Any]) -> None:
    asked = parse(body(text="a", target_lang="de", **auto), 10)
    assert wanted(asked).source_lang is None
    assert answered(asked, [TranslationResult("b", "en", confidence=0.5)])["details"][0] == {
        "source_lang": "en",
        "confidence": 0.5,
        "alternatives": [],
        "warnings": [],
        "segments": 1,
        "prompt_tokens": 0,
        "output_tokens": 0,
    }


@pytest.mark.parametrize(
    ("asked", "result", "there"),
    [
        ({}, TranslationResult("b", "en"), False),
        ({"details": True}, TranslationResult("b", "en"), True),
        ({}, TranslationResult("b", "en", alternatives=("c",)), True),
        ({}, TranslationResult("b", "en", warnings=(Warned("copied", "as it was"),)), True),
    ],
)
def test_details_come_where_there_is_something_to_say(
    asked: dict[str, Any], result: TranslationResult, there: bool
) -> None:
    assert ("details" in answered(parse(body(text="a", **PAIR, **asked), 10), [result])) is there


def test_a_stream_ends_with_the_whole_answer() -> None:
    asked = parse(body(text=["a", "b"], stream=True, **PAIR), 10)
    events = NativeEvents(asked)
    results = [TranslationResult("A", "en"), TranslationResult("B\u2028", "en")]
    assert events.delta(Delta(1, "B\u2028")) == b'event: delta\ndata: {"index":1,"text":"B\\u2028"}\n\n'
    assert events.delta(Delta(1, "", results[1])) == b""
    events.delta(Delta(0, "A", results[0]))
    assert events.end() == b'event: result\ndata: {"translation":["A","B\\u2028"]}\n\n'
    assert events.failed(errors.TruncatedOutputError("no end")) == (
        b'event: error\ndata: {"error":{"code":"output_truncated","message":"no end"}}\n\n'
    )
