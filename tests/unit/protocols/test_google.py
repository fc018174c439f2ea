"""Google's API: what its requests ask for, and what it answers."""

import json
from typing import Any

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols import errors
from dragoman_protocols.errors import (
    CallerError,
    CapacityError,
    InvalidFieldError,
    MalformedRequestError,
    RequestError,
)
from dragoman_protocols.google import API, CODES, READING, escaped, read_detection, respond_languages
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult


def site_of(*tags: str) -> Site:
    served = (Languages(source="en", targets=tags),)
    return Site(offer_of([served]), ("m",), Limits(1024, 1_000_000))


SITE = site_of("de", "zh-Hans", "zh-Hant")


def request_of(query: str = "", media: str = "application/json", body: bytes = b"") -> Request:
    headers = [(b"content-type", media.encode())] if media else []
    return Request("POST", "/language/translate/v2", query.encode(), headers, body)


def call_of(**fields: Any) -> Any:
    return READING.read(request_of(body=json.dumps(fields).encode()), SITE)


def answers(call: Any, *results: TranslationResult) -> Any:
    return json.loads(call.render([results] if results else []).body)["data"]["translations"]


FORM = "application/x-www-form-urlencoded; charset=utf-8"


@pytest.mark.parametrize(
    ("query", "media", "body"),
    [
        ("", "application/json", b'{"q": ["a", "b"], "target": "de", "source": "en", "format": "text"}'),
        ("key=x", "", b'{"q": ["a", "b"], "target": "de", "source": "en", "format": "text"}'),
        ("key=x&target=de", FORM, b"q=a&q=b&source=en&format=text"),
        ("q=a&q=b&target=de&source=en&format=text&key=x", "", b""),
    ],
)
def test_parameters_come_as_json_as_a_form_or_in_the_query(query: str, media: str, body: bytes) -> None:
    call = READING.read(request_of(query, media, body), SITE)
    assert call.requests == (TranslationRequest(("a", "b"), "de", "en"),)


def test_text_is_html_by_default() -> None:
    call = call_of(q="a", target="de", format=None, source=None)
    assert call.requests == (TranslationRequest(("a",), "de", None, format=Format.HTML),)
    result = TranslationResult("\"A\" & <b class='x'>'B'</b>", "en", confidence=0.5)
    assert answers(call, result) == [
        {
            "translatedText": "&quot;A&quot; &amp; <b class='x'>&#39;B&#39;</b>",
            "detectedSourceLanguage": "en",
        }
    ]
    plain = call_of(q="a", target="de", source="en", format="text", model="nmt")
    assert answers(plain, result) == [{"translatedText": result.text, "model": "nmt"}]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("it's", "it&#39;s"),
        ("a &amp; b &#39; &nbsp; &unknown", "a &amp; b &#39; &nbsp; &amp;unknown"),
        ('<a href="x" title="a > b">"</a>', '<a href="x" title="a > b">&quot;</a>'),
        ("1 < 2 > 0", "1 &lt; 2 &gt; 0"),
        ("<!-- it's --><script>a && 'b'</script>'", "<!-- it's --><script>a && 'b'</script>&#39;"),
    ],
)
def test_text_between_tags_is_escaped_as_google_does(text: str, written: str) -> None:
    assert escaped(text) == written
    assert escaped(written) == written


def test_blank_texts_come_back_as_they_are() -> None:
    call = call_of(q=["", "a", " "], target="de", source="en", format="text")
    assert call.requests[0].texts == ("a",)
    assert [each["translatedText"] for each in answers(call, TranslationResult("A", "en"))] == ["", "A", " "]
    nothing = call_of(q="", target="de")
    assert nothing.requests == ()
    assert answers(nothing) == [{"translatedText": "", "detectedSourceLanguage": "und"}]


def test_googles_codes_become_tags_unless_they_are_served_as_they_are() -> None:
    assert CODES.tag("zh-CN", frozenset()) == "zh-Hans"
    assert CODES.tag("zh", frozenset()) == "zh-Hans"
    assert CODES.tag("iw", frozenset()) == "he"
    assert CODES.tag("tl", frozenset()) == "fil"
    assert CODES.tag("zh-TW", frozenset({"zh-tw"})) == "zh-TW"


def listed(site: Site, query: str = "") -> Any:
    return json.loads(respond_languages(request_of(query), site).body)["data"]["languages"]


def test_languages_are_listed_with_names_on_request() -> None:
    named = listed(site_of("zh-Hans", "he"), "target=zh-TW")
    assert [item["language"] for item in named] == ["en", "zh-CN", "iw"]
    assert named[0]["name"] == "英文"
    assert listed(site_of("de")) == [{"language": "en"}, {"language": "de"}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"target": "de"}, "q is required"),
        ({"q": "a"}, "target is required"),
        ({"q": "a", "target": ""}, "target must not be empty"),
        ({"q": 1, "target": "de"}, "q must be a string or a list of strings"),
        ({"q": ["a", 1], "target": "de"}, "q[1] must be a string"),
        ({"q": "a", "target": "de", "format": "rtf"}, "format must be one of html, text"),
        ({"q": ["a"] * 129, "target": "de"}, "129 texts in one request; send at most 128"),
        ([], "the body must be a JSON object with q and target"),
    ],
)
def test_wrong_parameters_are_named(fields: Any, message: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        READING.read(request_of(body=json.dumps(fields).encode()), SITE)
    assert message in str(refused.value)


def test_detection_has_the_same_limit() -> None:
    with pytest.raises(InvalidFieldError, match="129 texts"):
        read_detection(request_of(body=json.dumps({"q": ["a"] * 129}).encode()), SITE)


def test_json_that_is_labelled_as_a_form_is_json() -> None:
    call = READING.read(request_of("", FORM, b' {"q": "a", "target": "de", "source": "en"}'), SITE)
    assert call.requests[0].texts == ("a",)


@pytest.mark.parametrize("query", ["key=x" + "&q=a" * 1000, "q=%ff&target=de"])
def test_a_query_that_cannot_be_read_is_refused(query: str) -> None:
    with pytest.raises(MalformedRequestError):
        READING.read(request_of(query), SITE)
    with pytest.raises(MalformedRequestError):
        READING.peek(request_of(query), SITE.offer)


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (CallerError("x"), 400, "INVALID_ARGUMENT"),
        (errors.BodyTooLargeError("x"), 413, "INVALID_ARGUMENT"),
        (errors.KeyMissingError("x"), 401, "UNAUTHENTICATED"),
        (errors.KeyRefusedError("x"), 403, "PERMISSION_DENIED"),
        (errors.UnknownPathError("x"), 404, "NOT_FOUND"),
        (errors.QuotaError("x"), 429, "RESOURCE_EXHAUSTED"),
        (errors.RateLimitedError("x", 5), 429, "RESOURCE_EXHAUSTED"),
        (errors.UpstreamError("x"), 502, "INTERNAL"),
        (errors.UpstreamTimeoutError("x"), 504, "DEADLINE_EXCEEDED"),
        (errors.NotReadyError("x", retry_after_s=5), 503, "UNAVAILABLE"),
        (errors.DeadlineExceededError("x"), 504, "DEADLINE_EXCEEDED"),
        (errors.GenerationError("x"), 500, "INTERNAL"),
    ],
)
def test_errors_have_googles_shape(error: RequestError, status: int, name: str) -> None:
    answer = API.error(error, request_of())
    message = json.loads(answer.body)["error"]
    assert (answer.status, message["code"], message["message"], message["status"]) == (
        status,
        status,
        "x",
        name,
    )
    assert message["errors"][0]["message"] == "x"
    assert dict(answer.headers).get("Retry-After") == ("5" if isinstance(error, CapacityError) else None)
