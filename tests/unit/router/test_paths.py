"""Endpoints found by method, path and body; errors in the format of the API."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols import errors
from dragoman_protocols.endpoints import EndpointKind
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import Offer
from dragoman_protocols.routes import api_of, recognise, with_body
from dragoman_protocols.site import Limits, Site
from dragoman_router.http.documents import document_of
from dragoman_router.request import RoutedRequest

UUID = "01234567-89ab-8cde-af01-23456789abcd"
FORM = [(b"content-type", b"application/x-www-form-urlencoded")]


OFFER = Offer(("en", "de"), {"en": ("de", "zh-Hans"), "de": ("en",)})


def peek(path: str, body: Any = b"", query: str = "", headers: Any = ()) -> tuple[str, Any]:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = RoutedRequest("POST", path, query.encode(), list(headers), content)
    endpoint = recognise(request)
    assert endpoint.kind is EndpointKind.TRANSLATE
    endpoint = with_body(endpoint, request)
    assert endpoint.reading is not None
    return endpoint.api.name, endpoint.reading.peek(request, OFFER)


@pytest.mark.parametrize(
    ("arguments", "name", "source", "targets"),
    [
        (("/translate", {"text": "x", "source_lang": "en", "target_lang": "de"}), "native", "en", ("de",)),
        (
            ("/translate", {"text": ["x"], "source_lang": "auto", "target_lang": "de"}),
            "native",
            None,
            ("de",),
        ),
        (("/translate", {"q": "x", "source": "auto", "target": "zt"}), "libretranslate", None, ("zh-Hant",)),
        (("/translate", b"q=x&source=en&target=pb", "", FORM), "libretranslate", "en", ("pt-BR",)),
        (("/translate", b"", "q=x&source=en&target=de&format=text"), "libretranslate", "en", ("de",)),
        (
            ("/translate", {"q": "text", "source": "zh", "target": "de", "format": "text"}),
            "libretranslate",
            "zh-Hans",
            ("de",),
        ),
        (
            ("/translate", {"text": "x", "source_lang": "en", "target_lang": "de"}, "a=b", FORM),
            "native",
            "en",
            ("de",),
        ),
        (("/translate", [{"Text": "x"}], "api-version=3.0&from=en&to=de&to=fr"), "azure", "en", ("de", "fr")),
        (
            (
                "/translate",
                {"inputs": [{"text": "x", "targets": [{"language": "de"}]}]},
                "api-version=2026-06-06",
            ),
            "azure",
            None,
            ("de",),
        ),
    ],
)
def test_pairs(arguments: Any, name: str, source: str | None, targets: tuple[str, ...]) -> None:
    found, peeked = peek(*arguments)
    need = peeked.needs[0]
    assert (found, need.source, need.targets) == (name, source, targets)


@pytest.mark.parametrize(
    ("path", "body", "cause"),
    [
        ("/translate", b'{"text": ', errors.MalformedRequestError),
        ("/translate", b'{"text": "\xff"}', errors.MalformedRequestError),
        ("/translate", b"[" * 100_000, errors.CallerError),
        ("/translate", b'{"text": 1, "target_lang": "de"}', errors.InvalidFieldError),
        ("/translate", b'{"text": "x", "source_lang": "en"}', errors.InvalidFieldError),
        (
            "/translate",
            b'{"text": "x", "source_lang": "en", "target_lang": "no language"}',
            errors.UnknownLanguageError,
        ),
    ],
)
def test_what_cannot_be_read_is_the_callers_error(path: str, body: bytes, cause: type[Exception]) -> None:
    with pytest.raises(cause):
        peek(path, body)


@given(
    st.just("/translate"),
    st.binary(),
)
def test_no_body_ends_in_another_error(path: str, body: bytes) -> None:
    for headers in ([], FORM):
        with suppress(errors.CallerError):
            peek(path, body, headers=headers)


ALL_ERRORS = [
    errors.MalformedRequestError("m"),
    errors.InvalidFieldError("m"),
    errors.UnknownPathError("m"),
    errors.UnknownDeploymentError("m"),
    errors.UnsupportedPairError("m"),
    errors.BodyTooLargeError("m"),
    errors.KeyMissingError("m"),
    errors.KeyRefusedError("m"),
    errors.QuotaError("m"),
    errors.RateLimitedError("m", 7),
    errors.QueueFullError("m", 7),
    errors.NoReplicaError("m", 7),
    errors.UpstreamError("m"),
    errors.UpstreamTimeoutError("m"),
]
STATUSES = {
    "/translate": [400, 422, 404, 404, 422, 413, 401, 403, 429, 429, 503, 503, 502, 504],
    "/languages": [400, 400, 404, 404, 400, 400, 403, 403, 403, 429, 503, 503, 502, 500],
    "/language/translate/v2": [400, 400, 404, 404, 400, 413, 401, 403, 429, 429, 503, 503, 502, 504],
}


@pytest.mark.parametrize("path", STATUSES)
def test_errors_have_the_status_and_shape_of_the_api(path: str) -> None:
    request = RoutedRequest("POST", path, b"", [])
    api = api_of(request)
    for error, status in zip(ALL_ERRORS, STATUSES[path], strict=True):
        answer = api.error(error, request)
        assert answer.status == status, error
        assert json.loads(answer.body)
        assert (("Retry-After", "7") in answer.headers) == isinstance(error, errors.CapacityError)


SITE = Site(OFFER, ("european",), Limits(None, 1000))


@pytest.mark.parametrize(
    ("path", "query", "expected"),
    [
        ("/languages", "", '"code":"en","name":"English","targets":["de","zh-Hans"]'),
    ],
)
def test_languages(path: str, query: str, expected: str) -> None:
    request = RoutedRequest("GET", path, query.encode(), [])
    endpoint = recognise(request)
    assert endpoint.kind is EndpointKind.RESPOND
    assert endpoint.respond is not None
    assert expected in endpoint.respond(request, SITE).body.decode()


@pytest.mark.parametrize(
    ("path", "query", "name"),
    [
        ("/transliterate", "api-version=3.0", "azure"),
        ("/transliterate", "", "native"),
        ("/v2/nothing", "api-version=3.0", "deepl"),
        ("/v1/nothing", "", "openai"),
        ("/language/nothing", "", "google"),
        ("/download_file", "", "libretranslate"),
    ],
)
def test_unknown_paths_get_the_errors_of_the_api_that_they_are_meant_for(
    path: str, query: str, name: str
) -> None:
    assert api_of(RoutedRequest("POST", path, query.encode(), [])).name == name


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/nowhere"),
        ("GET", "/metrics"),
        ("POST", "/drained"),
        ("GET", "//metrics"),
        ("GET", "/../metrics"),
        ("GET", "/a/./metrics"),
    ],
)
def test_paths_that_no_api_has_are_not_forwarded(method: str, path: str) -> None:
    with pytest.raises(errors.UnknownPathError):
        recognise(RoutedRequest(method, path, b"", [], deployment="n/d"))


@pytest.mark.parametrize(
    ("path", "fields", "query", "found"),
    [
        ("/translate_file", {"source": ["en"], "target": ["zt"]}, b"", ("en", ("zh-Hant",))),
        (
            "/translate_file",
            {"source": ["auto"], "target": ["de"], "api_key": ["k"]},
            b"",
            (None, ("de",)),
        ),
        ("/translate_file", {"target": ["de"]}, b"source=fr&target=en", ("fr", ("en",))),
    ],
)
def test_uploads_name_a_pair(path: str, fields: Any, query: bytes, found: Any) -> None:
    request = RoutedRequest("POST", path, query, [], upload=Upload(fields, "Hello"))
    endpoint = recognise(request)
    assert endpoint.kind is EndpointKind.FILE
    assert endpoint.reading is not None
    peeked = endpoint.reading.peek(request, OFFER)
    assert (peeked.needs[0].source, peeked.needs[0].targets) == found
    assert (peeked.sample, peeked.characters) == ("Hello", 0)


@pytest.mark.parametrize(
    ("method", "path", "found", "key"),
    [
        ("POST", f"/v2/document/{'0A' * 16}", "0A" * 16, True),
        ("POST", f"/v2/document/{'0A' * 16}/result", "0A" * 16, True),
        ("POST", f"/v2/document/{'0A' * 16}/cancel", "0A" * 16, True),
        ("POST", "/v2/document/0A", None, True),
        ("POST", f"/v2/document/{'0A' * 16}/result/../../../metrics", None, True),
        ("GET", f"/download_file/{UUID}.a_de.txt", UUID, False),
        ("GET", f"/download_file/{UUID}.a/b", None, False),
        ("GET", f"/download_file/../metrics?{UUID}.a", None, False),
    ],
)
def test_documents_are_requested_by_id(method: str, path: str, found: str | None, key: bool) -> None:
    request = RoutedRequest(method, path, b"", [])
    endpoint = recognise(request)
    assert (endpoint.kind, document_of(request), endpoint.needs_key) == (EndpointKind.DOCUMENT, found, key)


@pytest.mark.parametrize(("method", "path"), [("GET", "/v2/document/x"), ("POST", "/download_file/x")])
def test_documents_are_requested_with_one_method(method: str, path: str) -> None:
    with pytest.raises(errors.UnknownPathError, match="use "):
        recognise(RoutedRequest(method, path, b"", []))
