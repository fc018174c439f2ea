"""Azure's API: what its requests ask for, and what it answers."""

import json
from typing import Any

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols import errors
from dragoman_protocols.azure.api import API
from dragoman_protocols.azure.head import AzureError
from dragoman_protocols.azure.languages import read_detection, respond_languages
from dragoman_protocols.azure.translate import READING
from dragoman_protocols.detection import Detection
from dragoman_protocols.errors import CallerError, RequestError
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import EVERY_PAIR, offer_of
from dragoman_protocols.routes import api_of, recognise
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Formality, Format, TranslationRequest, TranslationResult

V3 = "api-version=3.0"
V2026 = "api-version=2026-06-06"


def site_of(*served: Languages) -> Site:
    return Site(offer_of([served]), ("small", "large"), Limits(1024, 1_000_000))


SITE = site_of(*EVERY_PAIR)


def request_of(query: str, body: Any = "", path: str = "/translate", **headers: str) -> Request:
    raw = [(name.replace("_", "-").lower().encode(), value.encode()) for name, value in headers.items()]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("GET" if path == "/languages" else "POST", path, query.encode(), raw, content)


def call_of(query: str, body: Any) -> Any:
    return READING.read(request_of(query, body), SITE)


def answers(call: Any, *results: list[TranslationResult]) -> Any:
    return json.loads(call.render(results).body)


def number_of(error: CallerError) -> int:
    return int(json.loads(API.error(error, request_of(V3, [])).body)["error"]["code"])


def test_texts_into_several_languages_are_one_request_for_each() -> None:
    call = call_of(f"{V3}&to=fr&to=de&from=en", [{"Text": "a"}, {"text": " "}, {"Text": "b"}])
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
    call = call_of(f"{V3}&to=fr", [{"text": "a"}, {"text": ""}])
    first, second = answers(call, [TranslationResult("A", "en", confidence=0.9951)])
    assert first["detectedLanguage"] == {"language": "en", "score": 1.0}
    assert second["detectedLanguage"] == {"language": "und", "score": 0.0}


def test_the_same_language_twice_is_answered_twice_and_translated_once() -> None:
    call = call_of(f"{V3}&to=fr&to=fr&from=en", [{"text": "a"}])
    (row,) = answers(
        call, *[[TranslationResult("A", "en")] * len(requested.texts) for requested in call.requests]
    )
    assert [each["text"] for each in row["translations"]] == ["A", "A"]


def test_the_newer_version_has_everything_per_text() -> None:
    target = {"language": "de", "tone": "formal"}
    call = call_of(
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
        call_of(query, body)
    assert number_of(refused.value) == number


@pytest.mark.parametrize(
    ("query", "body", "number"),
    [
        ("to=de", [], 400021),
        (V3, [{"text": "a"}], 400036),
        (f"{V3}&to=klingonish", [{"text": "a"}], 400036),
        (f"{V3}&to=de&from=klingonish", [{"text": "a"}], 400035),
        (f"{V3}&to=de", {"text": "a"}, 400000),
        (f"{V3}&to=de", [{"txt": "a"}], 400000),
        (f"{V3}&to=de", b"[{", 400074),
        (f"{V3}&to=de", [{"text": "a"}] * 1001, 400072),
        (f"{V3}&to=de&to=fr", [{"text": "a" * 25_001}], 400077),
        (f"{V3}" + "&to=de" * 1000, [{"text": "a"}], 400000),
        (V2026, {}, 400000),
        (V2026, {"inputs": [{"text": "a", "targets": []}]}, 400000),
        (V2026, [{"Text": "a"}], 400000),
        (
            V2026,
            {
                "inputs": [
                    {"text": "a", "targets": [{"language": f"en-{at:03}"} for at in range(201)]},
                ]
            },
            400000,
        ),
    ],
)
def test_a_router_refuses_with_the_same_numbers(query: str, body: Any, number: int) -> None:
    request = request_of(query, body)
    for reader in (lambda: READING.read(request, SITE), lambda: READING.peek(request, SITE.offer)):
        with pytest.raises(CallerError) as refused:
            reader()
        assert number_of(refused.value) == number


def test_each_source_is_a_need_of_its_own() -> None:
    inputs = [
        {"text": "a", "language": "en", "targets": [{"language": "de"}]},
        {"text": "b", "language": "fr", "targets": [{"language": "de"}]},
        {"text": "c", "language": "en", "targets": [{"language": "it"}, {"language": "de"}]},
        {"text": "d", "targets": [{"language": "de"}]},
        {"text": "e", "targets": [{"language": "zh", "script": "Hant"}]},
        {"text": "f", "targets": [{"language": "de"}]},
    ]
    found = READING.peek(request_of(V2026, {"inputs": inputs}), SITE.offer)
    assert found.needs == (
        Need("en", ("de", "it"), ("a", "c"), keeps=True),
        Need("fr", ("de",), ("b",), keeps=True),
        Need(None, ("de",), ("d", "f"), keeps=True),
        Need(None, ("zh-Hant",), ("e",), keeps=True),
    )
    assert found.characters == 7


def test_a_script_is_part_of_the_language() -> None:
    request = request_of(f"{V3}&to=de&from=zh&fromScript=Hant", [{"Text": "a"}])
    assert READING.peek(request, SITE.offer).needs == (Need("zh-Hant", ("de",), ("a",), keeps=True),)


@pytest.mark.parametrize(
    ("request_", "azure"),
    [
        (request_of(V3), True),
        (request_of(f"to=de&{V3}"), True),
        (request_of("to=de", Ocp_Apim_Subscription_Key="k"), True),
        (request_of("x=api-version=3.0"), False),
        (request_of(""), False),
    ],
)
def test_the_version_or_the_key_marks_a_request(request_: Request, azure: bool) -> None:
    assert API.claims(request_) is azure
    found = recognise(request_)
    assert (found is not None and found.api is API) is azure
    assert (api_of(request_) is API) is azure


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (errors.NotReadyError("x", retry_after_s=5), 503),
        (errors.GenerationError("x"), 500),
        (errors.DeadlineExceededError("x"), 504),
        (errors.QuotaError("x"), 403),
        (AzureError(400072, "x"), 400),
    ],
)
def test_an_error_is_a_number_its_first_digits_the_status(error: RequestError, status: int) -> None:
    for query, kind in ((V3, int), ("to=de", int), (V2026, str), ("a=b" + "&" * 1000, int)):
        answer = API.error(error, request_of(query, X_RequestId="an-id"))
        assert answer.status == status
        code = json.loads(answer.body)["error"]["code"]
        assert isinstance(code, kind)
        assert len(str(code)) == 6
        headers = dict(answer.headers)
        assert headers["X-RequestId"] == "an-id"
        assert headers.get("Retry-After") == ("5" if status == 503 else None)


@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ({"X_RequestId": "abc-1"}, "abc-1"),
        ({"X_ClientTraceId": "abc-2"}, "abc-2"),
        ({"X_RequestId": "a b"}, None),
        ({}, None),
    ],
)
def test_an_answer_has_the_callers_id(headers: dict[str, str], same: str | None) -> None:
    call = READING.read(request_of(f"{V3}&to=de", [{"Text": " "}, {"Text": "ab"}], **headers), SITE)
    answer = dict(call.render([[TranslationResult("A", "en")]]).headers)
    given = answer["X-RequestId"]
    assert given == same if same else len(given) == 36
    assert answer["X-Metered-Usage"] == "3"


@pytest.mark.parametrize(
    ("texts", "targets", "accepted"),
    [
        (["a" * 50_000], 1, True),
        (["a"] * 1000, 50, True),
        (["a" * 25_001], 2, False),
        ([""] * 1000, 51, False),
        ([""] * 1000, 900, False),
        (["a"] * 1001, 1, False),
    ],
)
def test_limits_count_every_target(texts: list[str], targets: int, accepted: bool) -> None:
    request = request_of(f"{V3}&from=en" + "&to=de" * targets, [{"text": text} for text in texts])
    if accepted:
        assert len(READING.read(request, SITE).requests) == 1
        return
    with pytest.raises(AzureError) as refused:
        READING.read(request, SITE)
    assert refused.value.number in (400072, 400077)


def listed(query: str, **headers: str) -> Any:
    site = site_of(Languages(source="en", targets=("he", "de")))
    return respond_languages(request_of(query, path="/languages", **headers), site)


def test_scopes_may_have_blanks_between() -> None:
    answer = listed(f"{V3}&scope=translation,%20dictionary,")
    assert list(json.loads(answer.body)) == ["translation", "dictionary"]


@pytest.mark.parametrize(
    ("kind", "sent", "asked", "answered", "text"),
    [
        (
            "plain",
            'a < b & <mstrans:dictionary translation="W&quot;">w</mstrans:dictionary> c',
            'a &lt; b &amp; <mstrans>W"</mstrans> c',
            'A &lt; B &amp; <mstrans>W"</mstrans> C',
            'A < B & W" C',
        ),
        (
            "html",
            "<p>a < mstrans:dictionary translation ='A &amp; B'>w</mstrans:dictionary></p>",
            "<p>a <mstrans>A &amp; B</mstrans></p>",
            "<p>A <mstrans>A &amp; B</mstrans></p>",
            "<p>A A &amp; B</p>",
        ),
    ],
)
def test_a_dynamic_dictionary_is_applied(kind: str, sent: str, asked: str, answered: str, text: str) -> None:
    call = call_of(f"{V3}&to=de&from=en&textType={kind}", [{"Text": sent}, {"Text": "other"}])
    entries, other = call.requests
    assert (entries.texts, entries.ignore_tags) == ((asked,), frozenset({"mstrans"}))
    assert other.texts == ("other",)
    assert not other.ignore_tags
    results = [TranslationResult(answered, "en")], [TranslationResult("andere", "en")]
    assert [each["translations"][0]["text"] for each in answers(call, *results)] == [text, "andere"]


def test_many_openings_of_dictionaries_take_linear_time() -> None:
    for text in ('<mstrans:dictionary translation="' * 1200, "<mstrans:dictionary " + " " * 40_000):
        assert call_of(f"{V3}&to=de&from=en", [{"Text": text}]).requests[0].texts == (text,)


def test_languages_are_listed_by_scope_with_names() -> None:
    answer = listed(f"{V3}&scope=translation", Accept_Language="de;q=0.9,en")
    assert json.loads(answer.body) == {
        "translation": {
            "en": {"name": "Englisch", "nativeName": "English", "dir": "ltr"},
            "he": {"name": "Hebräisch", "nativeName": "עברית", "dir": "rtl"},
            "de": {"name": "Deutsch", "nativeName": "Deutsch", "dir": "ltr"},
        }
    }
    newer = json.loads(listed(V2026).body)
    assert newer["models"] == newer["translation"]["de"]["models"] == ["small", "large"]
    assert newer["transliteration"] == {}
    tag = dict(answer.headers)["ETag"]
    same = listed(f"{V3}&scope=translation", Accept_Language="de", If_None_Match=tag)
    assert (same.status, same.body, dict(same.headers)["ETag"]) == (304, b"", tag)
    for query, number in ((f"{V3}&scope=models", 400001), ("scope=translation", 400021)):
        with pytest.raises(AzureError) as refused:
            listed(query)
        assert refused.value.number == number


def test_detection_is_part_of_the_older_version() -> None:
    site = site_of(Languages(source="en", targets=("de",)))
    call = read_detection(request_of(V3, [{"Text": "a"}, {"text": "b"}], "/detect"), site)
    assert call.texts == ("a", "b")
    found = [Detection("en", 0.5), Detection("und", 0.0)]
    assert json.loads(call.render(found).body) == [
        {
            "language": "en",
            "score": 0.5,
            "isTranslationSupported": True,
            "isTransliterationSupported": False,
        },
        {
            "language": "und",
            "score": 0.0,
            "isTranslationSupported": False,
            "isTransliterationSupported": False,
        },
    ]
    with pytest.raises(AzureError) as refused:
        read_detection(request_of(V2026, [{"Text": "a"}], "/detect"), site)
    assert refused.value.number == 400021
