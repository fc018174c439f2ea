import json
from dataclasses import replace
from typing import Any

import pytest

from dragoman_protocols import errors
from dragoman_protocols.calls import Translate
from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError, RequestError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.messages import Request
from dragoman_protocols.native import API, READING, speaks_libretranslate
from dragoman_protocols.offer import offer_of
from dragoman_protocols.routes import recognise, with_body
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
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

PAIR = {"source_lang": "en", "target_lang": "de"}


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


REQUEST = Request("POST", "/translate", b"", [])
SITE = Site(offer_of([()]), ("m",), Limits(10, 1_000_000))


def parse(raw: bytes, max_texts: int = 10) -> Translate:
    site = replace(SITE, limits=Limits(max_texts, 1_000_000))
    return READING.read(Request("POST", "/translate", b"", [], raw), site)


def wanted(raw: bytes) -> TranslationRequest:
    (request,) = parse(raw).requests
    return request


def answered(raw: bytes, results: list[TranslationResult]) -> Any:
    return json.loads(parse(raw).render([results]).body)


def test_one_text_and_several_are_distinguished() -> None:
    one, several = body(text="a", **PAIR), body(text=["a"], **PAIR)
    assert wanted(one) == wanted(several) == TranslationRequest(("a",), "de", "en")
    result = TranslationResult("b", "en")
    assert answered(one, [result]) == {"translation": "b"}
    assert answered(several, [result]) == {"translation": ["b"]}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({}, ()),
        ({"glossary_id": "a"}, ("a",)),
        ({"glossary_ids": ["a", "b"]}, ("a", "b")),
        ({"glossary_id": "a", "source_lang": "auto"}, ("a",)),
    ],
)
def test_a_request_names_glossaries(fields: dict[str, Any], found: tuple[str, ...]) -> None:
    raw = body(text="a", stream=True, **PAIR | fields)
    call = parse(raw)
    assert (call.glossary_ids, call.events is not None) == (found, True)
    assert READING.peek(Request("POST", "/translate", b"", [], raw), SITE.offer).glossary_ids == found


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'{"text": "\xff"}', "not JSON"),
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"text": "\\ud800"}', "not JSON"),
        (b"\xfe\xff\x00{", "not JSON"),
    ],
)
def test_a_body_that_is_not_json_in_utf8_is_malformed(raw: bytes, message: str) -> None:
    with pytest.raises(MalformedRequestError) as refused:
        parse(raw, 10)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (body(text=3, **PAIR), "text must be a string or a list of strings"),
        (body(text=["a", None], **PAIR), "text[1] must be a string"),
        (body(text={"a": 1}, **PAIR), "text must be a string or a list of strings"),
        (body(text="a", source_lang="en"), "target_lang is required"),
        (body(text="a", source_lang=1, target_lang="de"), "source_lang must be a string"),
        (body(text="a", tone="formal", **PAIR), "'tone' is no field of this request"),
        (body(), "text is required"),
        (body(text="a", terms=[{"source": "a"}], **PAIR), "terms[0].target is required"),
        (body(text="a", memory=[{"source": "a"}], **PAIR), "memory[0].target is required"),
        (body(text="a", memory=[{"source": "a", "target": " "}], **PAIR), "memory[0] must not be blank"),
        (body(text="a", memory=[{"source": "\n", "target": "b"}], **PAIR), "memory[0] must not be blank"),
        (body(text="a", alternatives=10, **PAIR), "alternatives must be at most 9"),
        (body(text="a", formality="rude", **PAIR), "formality must be one of default, more, less"),
        (body(text="a", glossary_ids=["a"] * 6, **PAIR), "glossary_ids must have at most 5"),
        (body(text="a", timeout_s=0, **PAIR), "timeout_s must be greater than 0"),
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (body(text="a", terms=[{"source": " ", "target": "b"}], **PAIR), "terms[0].source must not be blank"),
        (body(text="a", terms=[{"source": "", "target": "b"}], **PAIR), "terms[0].source must not be empty"),
        (body(text=["a"] * 11, **PAIR), "11 texts in one request; send at most 10"),
    ],
)
def test_fields_that_do_not_fit_are_named(raw: bytes, message: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse(raw, 10)
    assert str(refused.value) == message or message in str(refused.value)


def test_of_a_thousand_mistakes_the_first_is_named() -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parse(body(text=[1] * 1000, **PAIR), 2000)
    assert len(str(refused.value)) < 300


def all_errors(root: type[RequestError] = RequestError) -> list[type[RequestError]]:
    return [root, *(below for child in root.__subclasses__() for below in all_errors(child))]


def test_every_error_has_a_code_of_its_own() -> None:
    ours = [error for error in all_errors() if error.__module__ == "dragoman_protocols.errors"]
    assert len(ours) > 15
    for error in ours:
        # Both bounds on queues, the pod's and the router's, have the code `overloaded`.
        alike = [other for other in ours if other.code == error.code != "overloaded"]
        assert all(issubclass(other, error) or issubclass(error, other) for other in alike)


def test_an_error_for_capacity_has_the_time_of_the_next_attempt() -> None:
    answer = API.error(errors.DrainingError("leaving", retry_after_s=7), REQUEST)
    assert (answer.status, answer.headers, answer.close) == (503, (("Retry-After", "7"),), True)
    assert json.loads(answer.body) == {"error": {"code": "draining", "message": "leaving"}}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"target_lang": "pt_BR"}, "unknown_language"),
        ({"target_lang": " de "}, "unknown_language"),
        ({"source_lang": ""}, "unknown_language"),
        ({"target_lang": "x" * 36}, "invalid_field"),
    ],
)
def test_languages_that_are_none(fields: dict[str, Any], code: str) -> None:
    with pytest.raises(CallerError) as refused:
        parse(body(**{"text": "a", **PAIR, **fields}))
    assert refused.value.code == code


def test_the_router_s_tags_are_canonical_and_the_pod_s_as_they_were_sent() -> None:
    raw = body(text="a", source_lang="IW", target_lang="zh-hant")
    call, peeked = parse(raw), READING.peek(replace(REQUEST, body=raw), SITE.offer)
    assert peeked.needs == (Need("he", ("zh-Hant",), ("a",)),)
    assert (call.requests[0].source_lang, call.requests[0].target_lang) == ("IW", "zh-hant")


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
    assert wanted(raw) == TranslationRequest(
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


@pytest.mark.parametrize(
    "auto", [{}, {"source_lang": "auto"}, {"source_lang": "AUTO"}, {"source_lang": None}]
)
def test_a_source_language_that_is_not_given_is_detected_and_answered(auto: dict[str, Any]) -> None:
    requested = body(text="a", target_lang="de", **auto)
    assert wanted(requested).source_lang is None
    assert answered(requested, [TranslationResult("b", "en", confidence=0.5)])["details"][0] == {
        "source_lang": "en",
        "confidence": 0.5,
        "alternatives": [],
        "warnings": [],
        "segments": 1,
        "prompt_tokens": 0,
        "output_tokens": 0,
    }


@pytest.mark.parametrize(
    ("requested", "result", "there"),
    [
        ({}, TranslationResult("b", "en"), False),
        ({"details": True}, TranslationResult("b", "en"), True),
        ({}, TranslationResult("b", "en", alternatives=("c",)), True),
        ({}, TranslationResult("b", "en", warnings=(Warned("copied", "as it was"),)), True),
    ],
)
def test_details_come_where_there_is_something_to_say(
    requested: dict[str, Any], result: TranslationResult, there: bool
) -> None:
    assert ("details" in answered(body(text="a", **PAIR, **requested), [result])) is there


def test_a_stream_ends_with_the_whole_answer() -> None:
    events = parse(body(text=["a", "b"], stream=True, **PAIR)).events
    assert events is not None
    results = [TranslationResult("A", "en"), TranslationResult("B\u2028", "en")]
    assert events.delta(Delta(1, "B\u2028")) == b'event: delta\ndata: {"index":1,"text":"B\\u2028"}\n\n'
    assert events.delta(Delta(1, "", results[1])) == b""
    events.delta(Delta(0, "A", results[0]))
    assert events.end() == b'event: result\ndata: {"translation":["A","B\\u2028"]}\n\n'
    assert events.failed(errors.TruncatedOutputError("no end")) == (
        b'event: error\ndata: {"error":{"code":"output_truncated","message":"no end"}}\n\n'
    )


FORM, JSON, MULTIPART = (
    b"application/x-www-form-urlencoded",
    b"application/json",
    b"multipart/form-data; boundary=XX",
)


@pytest.mark.parametrize(
    ("media", "body", "query", "libretranslate"),
    [
        (FORM, "q=a&source=en&target=de", "", True),
        (FORM, "source=en", "", True),
        (FORM, "", "", True),
        (MULTIPART, "", "", True),
        (b"", "", "q=a&source=en&target=de", True),
        (FORM, "", "q=a&source=en&target=de", True),
        (b"", "", "q=a" + "&to=de" * 1000, True),
        (JSON, '{"q": "a", "source": "en", "target": "de"}', "", True),
        (JSON, '{"q": "text", "source": "en", "target": "de", "format": "text"}', "", True),
        (JSON, '{"target": "de", "q" : ["text"]}', "", True),
        (JSON, '{"target": "de"}', "", True),
        (FORM, '{"q": "a"}', "", True),
        (JSON, '{"text": "a", "source_lang": "en", "target_lang": "de"}', "", False),
        (JSON, '{"terms": [{"source": "q", "target": "a"}], "text": "a", "target_lang": "de"}', "", False),
        (JSON, '{"terms": [{"source": "q", "target": "a"}]}', "", False),
        (FORM, '{"text": "\\"q\\": 1", "source_lang": "en", "target_lang": "de"}', "", False),
        (JSON, '{"source_lang": "en", "text": "q"}', "", False),
        (JSON, '["q"]', "", False),
        (JSON, '["q"]', "a=b", False),
        (JSON, '{"q": "a"', "", False),
        (JSON, '{"q": ' + "[" * 100_000, "", False),
        (JSON, "{}", "", False),
        (JSON, "", "", False),
        (JSON, "", "a=b", False),
        (b"", "", "", False),
        (b"text/plain", "q=a", "", False),
    ],
)
def test_requests_of_libretranslate_are_recognised(
    media: bytes, body: str, query: str, libretranslate: bool
) -> None:
    request = Request("POST", "/translate", query.encode(), [(b"content-type", media)], body.encode())
    assert speaks_libretranslate(request) is libretranslate
    found = recognise(request)
    assert with_body(found, request).api.name == ("libretranslate" if libretranslate else "native")
