import json
from typing import Any

import pytest
from starlette.datastructures import QueryParams
from starlette.requests import Request

from dragoman_protocols import errors
from dragoman_protocols.errors import CallerError, RequestError
from dragoman_protocols.translation import Formality, Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.azure.dialect import Azure, azure, check_size, read_v3
from dragoman_service.dialects.azure.errors import AzureRefusal, number_of

V3 = "api-version=3.0"
V2026 = "api-version=2026-06-06"


def request_of(query: str, **headers: str) -> Request:
    raw = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    return Request({"type": "http", "query_string": query.encode(), "headers": raw})


def read(query: str, body: Any) -> Any:
    request = request_of(query)
    return azure(request, 1024).read(request, json.dumps(body).encode())


def answers(call: Any, *results: list[TranslationResult]) -> Any:
    return json.loads(call.render(results).body)


def test_texts_into_several_languages_are_one_request_for_each() -> None:
    call = read(f"{V3}&to=fr&to=de&from=en", [{"Text": "a"}, {"text": " "}, {"Text": "b"}])
    assert call.requests == (
        TranslationRequest(("a", "b"), "fr", "en"),
        TranslationRequest(("a", "b"), "de", "en"),
    )
    french = [TranslationResult("A", "en"), TranslationResult("B", "en")]
    german = [TranslationResult("Ä", "en"), TranslationResult("ß", "en")]
    assert answers(call, french, german) == [
        {"translations": [{"text": "A", "to": "fr"}, {"text": "Ä", "to": "de"}]},
        {"translations": [{"text": " ", "to": "fr"}, {"text": " ", "to": "de"}]},
        {"translations": [{"text": "B", "to": "fr"}, {"text": "ß", "to": "de"}]},
    ]


def test_the_detected_language_is_answered_where_none_was_given() -> None:
    call = read(f"{V3}&to=fr", [{"text": "a"}, {"text": ""}])
    first, second = answers(call, [TranslationResult("A", "en", confidence=0.75)])
    assert first["detectedLanguage"] == {"language": "en", "score": 0.75}
    assert second["detectedLanguage"] == {"language": "und", "score": 0.0}


def test_the_same_language_twice_is_answered_twice_and_translated_once() -> None:
    call = read(f"{V3}&to=fr&to=fr&from=en", [{"text": "a"}])
    (row,) = answers(call, *[[TranslationResult("A", "en")] * len(asked.texts) for asked in call.requests])
    assert [each["text"] for each in row["translations"]] == ["A", "A"]


def test_the_newer_version_has_everything_per_text() -> None:
    target = {"language": "de", "tone": "formal"}
    call = read(
        V2026,
        {
            "inputs": [
                {
                    "text": "<b>a</b>",
                    "textType": "Html",
                    "language": "en",
                    "targets": [target, {"language": "fr"}],
                },
                {"text": "b", "targets": [{"language": "zh", "script": "Hant"}]},
            ]
        },
    )
    assert call.requests == (
        TranslationRequest(("<b>a</b>",), "de", "en", format=Format.HTML, formality=Formality.MORE),
        TranslationRequest(("<b>a</b>",), "fr", "en", format=Format.HTML),
        TranslationRequest(("b",), "zh-Hant", None),
    )
    results = [[TranslationResult(text, "en", prompt_tokens=3, output_tokens=2)] for text in "ABC"]
    first, second = answers(call, *results)["value"]
    assert first == {
        "translations": [
            {
                "language": "de",
                "sourceCharacters": 8,
                "text": "A",
                "instructionTokens": 3,
                "responseTokens": 2,
            },
            {
                "language": "fr",
                "sourceCharacters": 8,
                "text": "B",
                "instructionTokens": 3,
                "responseTokens": 2,
            },
        ]
    }
    assert second["detectedLanguage"]["language"] == "en"


@pytest.mark.parametrize(
    ("query", "body", "number"),
    [
        ("api-version=2.0&to=de", [], 400021),
        ("to=de", [], 400021),
        (V3, [{"text": "a"}], 400036),
        (f"{V3}&to=klingonish", [{"text": "a"}], 400036),
        (f"{V3}&to=de&from=klingonish", [{"text": "a"}], 400035),
        (f"{V3}&to=de&textType=rtf", [{"text": "a"}], 400071),
        (f"{V3}&to=de&toScript=Latn", [{"text": "a"}], 400000),
        (f"{V3}&to=de", {"text": "a"}, 400000),
        (f"{V3}&to=de", [{"txt": "a"}], 400000),
        (f"{V3}&to=de", [{"text": "a"}] * 1001, 400072),
        (f"{V3}&to=de&to=fr", [{"text": "a" * 25_001}], 400077),
        (V2026, {"inputs": []}, 400000),
        (
            V2026,
            {"inputs": [{"text": "a", "targets": [{"language": "de", "adaptiveDatasetId": "x"}]}]},
            400000,
        ),
    ],
)
def test_refusals_have_azures_numbers(query: str, body: Any, number: int) -> None:
    with pytest.raises(CallerError) as refused:
        read(query, body)
    assert number_of(refused.value) == number


def test_what_is_no_json_is_told_apart() -> None:
    with pytest.raises(errors.MalformedRequestError) as refused:
        read_v3(QueryParams("to=de"), b"[{", 1024)
    assert number_of(refused.value) == 400074


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotReadyError("x", retry_after_s=5), 503),
        (errors.GenerationError("x"), 500),
        (errors.DeadlineExceededError("x"), 504),
        (AzureRefusal(400072, "x"), 400),
    ],
)
def test_a_refusal_is_a_number_its_first_digits_the_status(error: RequestError, status: int) -> None:
    for version, kind in (("3.0", int), ("2026-06-06", str)):
        answer = Azure("an-id", version, 1024).refuse(error)
        assert answer.status_code == status
        code = json.loads(bytes(answer.body))["error"]["code"]
        assert isinstance(code, kind)
        assert len(str(code)) == 6
        assert answer.headers["X-RequestId"] == "an-id"
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ({"X_RequestId": "abc-1"}, "abc-1"),
        ({"X_ClientTraceId": "abc-2"}, "abc-2"),
        ({"X_RequestId": "a b"}, None),
        ({}, None),
    ],
)
def test_a_request_goes_by_its_callers_id(headers: dict[str, str], same: str | None) -> None:
    given = azure(request_of(V3, **headers), 1024).request_id
    assert given == same if same else len(given) == 36


def test_limits_count_every_target() -> None:
    check_size([("a" * 50_000, 1)], 1024)
    check_size([("a", 50)] * 1000, 1024)
    for sizes in ([("a" * 25_001, 2)], [("", 51)] * 1000, [("a", 1)] * 1001):
        with pytest.raises(AzureRefusal):
            check_size(sizes, 1024)


def test_many_targets_of_empty_texts_are_refused_before_they_cost_anything() -> None:
    with pytest.raises(AzureRefusal) as refused:
        read(f"{V3}&from=en" + "&to=de" * 900, [{"text": ""}] * 1000)
    assert refused.value.number == 400077
