"""LibreTranslate's API: calls of its requests, and answers of their results."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import Peek, Translate
from dragoman_protocols.detection import NOTHING, Detection
from dragoman_protocols.documents import Document
from dragoman_protocols.errors import (
    BodyTooLargeError,
    CapacityError,
    DeadlineExceededError,
    DrainingError,
    EngineDeadError,
    InvalidFieldError,
    LanguageError,
    NoReplicaError,
    NotReadyError,
    RateLimitedError,
    RequestError,
    TextTooLongError,
    TruncatedOutputError,
    UnknownDocumentError,
    UnknownLanguageError,
    UnsupportedFileError,
    UnsupportedPairError,
    UpstreamError,
)
from dragoman_protocols.libretranslate import files
from dragoman_protocols.libretranslate.api import (
    API,
    READING,
    read_detection,
    respond_health,
    respond_languages,
    respond_settings,
    respond_suggestion,
)
from dragoman_protocols.libretranslate.fields import CODES
from dragoman_protocols.libretranslate.files import (
    handle_download,
    translated_name,
)
from dragoman_protocols.messages import CORS_HEADERS, Request
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult

SITE = Site(offer_of([()]), ("m",), Limits(3, 1000))


def request(values: Any = None, path: str = "/translate") -> Request:
    return Request("POST", path, b"", [], b"" if values is None else json.dumps(values).encode())


def call_of(**values: Any) -> Translate:
    return READING.read(request({"q": "Hello", "source": "en", "target": "de", **values}), SITE)


def requested(**values: Any) -> TranslationRequest:
    (wanted,) = call_of(**values).requests
    return wanted


def answer(results: list[TranslationResult], **values: Any) -> Any:
    call = call_of(**values)
    return json.loads(call.render([results] if call.requests else []).body)


def site(*served: Languages) -> Site:
    return Site(offer_of([served]), ("m",), Limits(3, 1000))


def test_a_request_in_the_core_s_terms() -> None:
    assert requested() == TranslationRequest(("Hello",), "de", "en", ignore_unsupported=True)
    assert requested(q=["a", "b"], source="auto", format="html", alternatives="3") == TranslationRequest(
        ("a", "b"), "de", None, Format.HTML, alternatives=3, ignore_unsupported=True, one_source=True
    )


@pytest.mark.parametrize(
    ("code", "tag"),
    [("zh", "zh-Hans"), ("zt", "zh-Hant"), ("PB", "pt-BR"), ("pt", "pt"), ("zh-Hant", "zh-Hant")],
)
def test_codes_become_tags(code: str, tag: str) -> None:
    assert requested(target=code).target_lang == tag
    assert requested(source=code, target="ne").source_lang == tag


@pytest.mark.parametrize(
    ("tag", "code"),
    [("fil", "tl"), ("zh", "zh-Hans"), ("zh-Hant", "zh-Hant"), ("pt-BR", "pt-BR"), ("en", "en")],
)
def test_tags_become_codes_that_are_tags(tag: str, code: str) -> None:
    assert CODES.code(tag) == code


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": None}, "Invalid request: missing q parameter"),
        ({"source": ""}, "Invalid request: missing source parameter"),
        ({"target": None}, "Invalid request: missing target parameter"),
        ({"q": 5}, "Invalid request: q parameter is neither a string nor a list of strings"),
        ({"q": ["a", 5]}, "Invalid request: q parameter is neither a string nor a list of strings"),
        ({"q": "x" * 101}, r"Invalid request: request \(101\) exceeds text limit \(100\)"),
        ({"q": ["x", "x" * 101]}, r"Invalid request: request \(101\) exceeds text limit \(100\)"),
        ({"q": list("abcd")}, r"Invalid request: request \(4\) exceeds text limit \(3\)"),
        ({"format": "xml"}, "xml format is not supported"),
        ({"alternatives": "many"}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": [1]}, "Invalid request: alternatives parameter is not a number"),
        ({"alternatives": 10}, "Invalid request: alternatives parameter must be <= 9"),
    ],
)
def test_invalid_values_get_libretranslate_s_messages(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidFieldError, match=f"^{message}$"):
        answer([], **values)


@pytest.mark.parametrize("values", [{"source": "klingon!"}, {"target": "auto"}, {"q": " ", "target": "qq"}])
def test_languages_are_checked_even_where_there_is_nothing_to_translate(values: dict[str, Any]) -> None:
    with pytest.raises(UnknownLanguageError):
        answer([], **values)


@pytest.mark.parametrize("alternatives", [None, "", 0, -3, "-1", False])
def test_no_alternatives(alternatives: Any) -> None:
    assert answer([TranslationResult("Hallo", "en")], alternatives=alternatives) == {
        "translatedText": "Hallo"
    }


def test_answers_for_one_text_and_for_several() -> None:
    found = TranslationResult("Hallo", "en", 0.876, ("Servus", "Moin"))
    assert answer([found]) == {"translatedText": "Hallo"}
    assert answer([found], q=["Hello"]) == {"translatedText": ["Hallo"]}
    assert answer([found], source="auto", alternatives=2) == {
        "translatedText": "Hallo",
        "detectedLanguage": {"confidence": 88.0, "language": "en"},
        "alternatives": ["Servus", "Moin"],
    }
    assert answer(
        [found, TranslationResult("Ja", "zh", 1.0)], q=["Hello", "是"], source="AUTO", alternatives=1
    ) == {
        "translatedText": ["Hallo", "Ja"],
        "detectedLanguage": [
            {"confidence": 88.0, "language": "en"},
            {"confidence": 100.0, "language": "zh-Hans"},
        ],
        "alternatives": [["Servus", "Moin"], []],
    }


def test_blank_texts_come_back_in_their_places() -> None:
    result = TranslationResult("Hallo", "en", 0.9)
    assert requested(q=["", "Hello", " \n"]).texts == ("Hello",)
    assert answer([result], q=["", "Hello", " \n"]) == {"translatedText": ["", "Hallo", " \n"]}
    assert answer([result], q=["", "Hello"], source="auto")["detectedLanguage"] == [
        {"confidence": 0.0, "language": "en"},
        {"confidence": 90.0, "language": "en"},
    ]
    assert answer([], q=" ") == {"translatedText": " "}


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (InvalidFieldError("wrong"), 400, "wrong"),
        (UnknownLanguageError("'zz' names no language", "zz", "target"), 400, "zz is not supported"),
        (UnsupportedPairError("de to fr", "fr"), 400, "de to fr"),
        (UnsupportedFileError(".x"), 400, "Invalid request: file format not supported: .x"),
        (TextTooLongError("long"), 400, "long"),
        (BodyTooLargeError("large"), 400, "large"),
        (CapacityError("full", 7), 429, "Slowdown: full"),
        (RateLimitedError("too many", 7), 429, "Slowdown: too many"),
        (NoReplicaError("none", 7), 503, "none"),
        (UpstreamError("failed"), 502, "failed"),
        (NotReadyError("loading"), 503, "loading"),
        (DrainingError("leaving"), 503, "leaving"),
        (EngineDeadError("dead"), 503, "dead"),
        (DeadlineExceededError("late"), 500, "late"),
        (TruncatedOutputError("cut"), 500, "cut"),
        (RequestError("defect"), 500, "defect"),
    ],
)
def test_errors(error: RequestError, status: int, message: str) -> None:
    response = API.error(error, request())
    headers = dict(response.headers)
    assert (response.status, json.loads(response.body)) == (status, {"error": message})
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert ("Retry-After" in headers) is isinstance(error, CapacityError)


@pytest.mark.parametrize(
    ("name", "target", "translated"),
    [
        ("letter.docx", "de", "letter_de.docx"),
        ("../../etc/My letter.TXT", "zh-Hans", "My_letter_zh-Hans.txt"),
        ("C:\\a\\b.srt", "de", "b_de.srt"),
        ('a"\r\nX: y.txt', "de", "a_X_y_de.txt"),
        ("पत्र.txt", "ne", "file_ne.txt"),
        ("x" * 500 + ".txt", "de", "x" * 100 + "_de.txt"),
    ],
)
def test_a_translated_file_has_a_harmless_name(name: str, target: str, translated: str) -> None:
    assert translated_name(name, target) == translated


def test_languages_are_listed_with_their_targets() -> None:
    pairs = (Languages(source="en", targets=("de", "zh")), Languages(source="zz", targets=("en",)))
    answered = respond_languages(request(), site(*pairs))
    assert json.loads(answered.body) == [
        {"code": "en", "name": "English", "targets": ["de", "zh-Hans"]},
        {"code": "zz", "name": "zz", "targets": ["en"]},
    ]
    assert answered.headers == CORS_HEADERS
    everything = json.loads(respond_languages(request(), SITE).body)
    assert len(everything) > 50
    assert all(len(each["targets"]) == len(everything) - 1 for each in everything)


@pytest.mark.parametrize(("targets", "first"), [(("de", "en"), "en"), (("de", "fr"), "de"), (("ne",), "ne")])
def test_a_page_begins_with_a_target_that_is_served(targets: tuple[str, ...], first: str) -> None:
    settings = json.loads(respond_settings(request(), site(Languages(source="es", targets=targets))).body)
    assert settings["language"]["target"]["code"] == first
    assert (settings["charLimit"], settings["batchLimit"], settings["keyRequired"]) == (100, 3, False)


def test_settings_of_a_router() -> None:
    router = replace(SITE, limits=Limits(None, 1000), keys_required=True)
    settings = json.loads(respond_settings(request(), router).body)
    assert (settings["batchLimit"], settings["keyRequired"]) == (-1, True)


def test_settings_without_a_pair() -> None:
    pair = Languages(source="es", targets=("es",))
    assert json.loads(respond_settings(request(), site(pair)).body)["language"]["target"]


def test_several_texts_have_one_language() -> None:
    call = read_detection(request({"q": ["a", "b"]}), SITE)
    assert call.texts == ("a\nb",)
    for wrong in (None, "", [], 5, ["a", 5], {"a": 1}):
        with pytest.raises(InvalidFieldError, match="q parameter"):
            read_detection(request({"q": wrong}), SITE)
    found = [Detection("zh", 0.994), NOTHING]
    assert json.loads(call.render(found).body) == [
        {"confidence": 99.0, "language": "zh-Hans"},
        {"confidence": 0.0, "language": "en"},
    ]


def test_a_language_into_itself_is_kept() -> None:
    into_german = site(Languages(source="en", targets=("de",)))
    for source, target in (("en", "EN"), ("zh", "zh-hans"), ("iw", "he"), ("en", "en-US")):
        asked = request({"q": "a", "source": source, "target": target})
        assert READING.read(asked, into_german).characters == 1
    with pytest.raises(LanguageError):
        READING.read(request({"q": "a", "source": "de", "target": "en"}), into_german)


def test_health_and_suggestions() -> None:
    assert respond_health(request(), SITE).status == 200
    assert respond_health(request(), replace(SITE, ready=False)).status == 503
    assert respond_suggestion(request(), SITE).status == 403


def upload(fields: dict[str, list[str]], query: bytes = b"", name: str | None = "a b.txt") -> Request:
    return Request("POST", "/translate_file", query, [], upload=Upload(fields, "Hello", name, b"Hello\n"))


@pytest.mark.parametrize(
    ("fields", "query", "need"),
    [
        ({"source": ["en"], "target": ["zt"]}, b"", Need("en", ("zh-Hant",), keeps=True)),
        ({"source": ["auto"], "target": ["de"], "api_key": ["k"]}, b"", Need(None, ("de",), keeps=True)),
        ({"target": ["de"]}, b"source=fr&target=en", Need("fr", ("en",), keeps=True)),
    ],
)
def test_the_pair_of_a_file(fields: dict[str, list[str]], query: bytes, need: Need) -> None:
    call = files.READING.read(upload(fields, query), SITE)
    assert (call.request.source_lang, call.request.target_lang) == (need.source, need.targets[0])
    assert files.READING.peek(upload(fields, query), SITE.offer) == Peek((need,), 0, sample="Hello")
    assert (call.name, call.content) == (f"a_b_{need.targets[0]}.txt", b"Hello\n")
    document = Document(UUID(int=10), "libretranslate", "a_de.txt", "de")
    url = {"translatedFileUrl": f"http://localhost/download_file/{document.id}.a_de.txt"}
    assert json.loads(call.render(document).body) == url
    document.findings = {"numbers": 2}
    assert json.loads(call.render(document).body) == {**url, "findings": {"numbers": 2}}


@pytest.mark.parametrize(("name", "message"), [(None, "missing file parameter"), ("", "empty file")])
def test_a_form_without_a_file(name: str | None, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message):
        files.READING.read(upload({"source": ["en"], "target": ["de"]}, name=name), SITE)


async def test_a_download_has_the_file_s_name_and_type() -> None:
    document = Document(UUID(int=10), "libretranslate", "a_de.txt", "de")
    delivered: list[Document] = []

    class Kept:
        def find(self, api: str, document_id: str) -> Document:
            assert (api, document_id) == ("libretranslate", str(document.id))
            return document

        def result(self, _: Document) -> bytes:
            return b"Hallo"

        def delivered(self, found: Document, _kept_s: float) -> None:
            delivered.append(found)

    def handled(name: str) -> Any:
        key = f"{document.id}.{name}"
        requested = Request("GET", f"/download_file/{key}", b"", [], variables={"key": key})
        return handle_download(requested)(Kept())  # type: ignore[arg-type]

    found = await handled("a_de.txt")
    headers = dict(found.headers)
    assert (found.status, found.body, headers["Content-Type"]) == (200, b"Hallo", "text/plain")
    assert headers["Content-Disposition"] == "attachment; filename=a_de.txt"
    assert headers["Access-Control-Allow-Origin"] == "*"
    assert not delivered
    found.delivered()
    assert delivered == [document]
    with pytest.raises(UnknownDocumentError):
        await handled("b_de.txt")
