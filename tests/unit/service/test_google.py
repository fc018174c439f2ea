import json
from typing import Any

import pytest
from starlette.requests import Request

from dragoman_protocols import errors
from dragoman_protocols.errors import CallerError, InvalidFieldError, ServiceError
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.google.dialect import Google, languages, parameters, tag_of
from dragoman_service.dialects.google.html import escaped
from dragoman_service.dialects.google.shapes import Detection, Translation

GOOGLE = Google(("en", "de", "zh-Hans", "zh-Hant"), 1024)


def request_of(query: str = "", media: str = "application/json") -> Request:
    headers = [(b"content-type", media.encode())] if media else []
    return Request(
        {"type": "http", "query_string": query.encode(), "headers": headers, "path": "/", "method": "POST"}
    )


def read(**fields: Any) -> Any:
    return GOOGLE.read(request_of(), json.dumps(fields).encode())


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
    call = GOOGLE.read(request_of(query, media), body)
    assert call.requests == (TranslationRequest(("a", "b"), "de", "en"),)


def test_text_is_html_unless_it_is_said_not_to_be() -> None:
    call = read(q="a", target="de", format=None, source=None)
    assert call.requests == (TranslationRequest(("a",), "de", None, format=Format.HTML),)
    result = TranslationResult("\"A\" & <b class='x'>'B'</b>", "en", confidence=0.5)
    assert answers(call, result) == [
        {
            "translatedText": "&quot;A&quot; &amp; <b class='x'>&#39;B&#39;</b>",
            "detectedSourceLanguage": "en",
        }
    ]
    plain = read(q="a", target="de", source="en", format="text", model="nmt")
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
    call = read(q=["", "a", " "], target="de", source="en", format="text")
    assert call.requests[0].texts == ("a",)
    assert [each["translatedText"] for each in answers(call, TranslationResult("A", "en"))] == ["", "A", " "]
    nothing = read(q="", target="de")
    assert nothing.requests == ()
    assert answers(nothing) == [{"translatedText": "", "detectedSourceLanguage": "und"}]


def test_googles_codes_become_tags_unless_they_are_served_as_they_are() -> None:
    assert tag_of("zh-CN", ()) == "zh-Hans"
    assert tag_of("iw", ()) == "he"
    assert tag_of("zh-TW", ("zh-TW",)) == "zh-TW"
    listed = languages(("en", "zh-Hans", "he"), "zh-TW")["data"]["languages"]
    assert [item["language"] for item in listed] == ["en", "zh-CN", "iw"]
    assert listed[0]["name"] == "英文"
    assert languages(("en",), None)["data"]["languages"] == [{"language": "en"}]


@pytest.mark.parametrize(
    ("shape", "fields", "said"),
    [
        (Translation, {"target": "de"}, "q is required"),
        (Translation, {"q": "a"}, "target is required"),
        (Translation, {"q": 1, "target": "de"}, "q must be a string or a list of strings"),
        (Translation, {"q": "a", "target": "de", "format": "rtf"}, "format"),
        (Detection, {"q": ["a"] * 129}, "129 text segments in one request; send at most 128"),
    ],
)
def test_wrong_parameters_are_named(shape: Any, fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        parameters(request_of(), json.dumps(fields).encode(), shape, 1024)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("error", "status", "name"),
    [
        (CallerError("x"), 400, "INVALID_ARGUMENT"),
        (errors.BodyTooLargeError("x"), 413, "INVALID_ARGUMENT"),
        (errors.NotReadyError("x", retry_after_s=5), 503, "UNAVAILABLE"),
        (errors.DeadlineExceededError("x"), 504, "DEADLINE_EXCEEDED"),
        (errors.GenerationError("x"), 500, "INTERNAL"),
    ],
)
def test_errors_have_googles_shape(error: ServiceError, status: int, name: str) -> None:
    answer = GOOGLE.refuse(error)
    said = json.loads(bytes(answer.body))["error"]
    assert (answer.status_code, said["code"], said["message"], said["status"]) == (status, status, "x", name)
    assert said["errors"][0]["message"] == "x"
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)
