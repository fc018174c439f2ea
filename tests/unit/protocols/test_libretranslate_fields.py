"""Requests to LibreTranslate's API in all the shapes in which clients send them."""

import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError
from dragoman_protocols.libretranslate.api import READING
from dragoman_protocols.libretranslate.fields import read_fields
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import read_form
from dragoman_protocols.native import speaks_libretranslate
from dragoman_protocols.offer import offer_of
from dragoman_protocols.site import Limits, Site

FORM, JSON, MULTIPART = (
    "application/x-www-form-urlencoded",
    "application/json",
    "multipart/form-data; boundary=XX",
)


SITE = Site(offer_of([()]), ("m",), Limits(5, 9000))


def request(media: str = "", query: str = "", body: bytes = b"") -> Request:
    headers = [(b"content-type", media.encode("latin-1"))] if media else []
    return Request("POST", "/translate", query.encode("latin-1"), headers, body)


def part(name: str, value: str, more: str = "") -> str:
    return f'--XX\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n{value}\r\n'


def values(media: str = "", body: str = "", query: str = "") -> dict[str, Any]:
    found = read_fields(request(media, query, body.encode()))
    return {name: value for name, value in found.values.items() if value is not None}


@pytest.mark.parametrize("text", ["Hello", "Grüße & so + 5 %", "a\nb", "नमस्ते", ' "q": '])
def test_one_text_by_each_way(text: str) -> None:
    message = {"q": text, "source": "en"}
    assert values(FORM, urlencode(message)) == message
    assert values(JSON, json.dumps(message)) == message
    assert values("application/json; charset=utf-8", json.dumps(message, ensure_ascii=False)) == message
    assert values(MULTIPART, part("q", text) + part("source", "en") + "--XX--\r\n") == message
    assert values("", "", urlencode(message)) == message


def test_several_texts_by_each_way() -> None:
    assert values(JSON, '{"q": ["a", "b"]}') == {"q": ["a", "b"]}
    assert values(FORM, "q=a&q=b&q=c") == {"q": ["a", "b", "c"]}
    assert values("", "", "q=a&q=b") == {"q": ["a", "b"]}


def test_json_that_curl_calls_a_form() -> None:
    assert values(FORM, ' {"q": "a"}') == {"q": "a"}


def test_the_query_wins_over_a_form_and_json_over_the_query() -> None:
    assert values(FORM, "q=form&source=en", "q=query") == {"q": "query", "source": "en"}
    assert values(JSON, '{"q": "json"}', "q=query") == {"q": "json"}


def test_line_ends_of_forms_are_those_of_texts() -> None:
    assert values(FORM, "q=a%0D%0Ab%0D%0A") == {"q": "a\nb\n"}
    assert values(JSON, '{"q": "a\\r\\nb"}') == {"q": "a\r\nb"}


def test_a_file_comes_as_it_was_sent() -> None:
    content = bytes(range(256)) * 3 + b"\r\n--X\r\n"
    head = (
        part("source", "en").encode()
        + b'--XX\r\nContent-Disposition: form-data; name="file"; filename="a.docx"\r\n'
    )
    body = head + b"Content-Type: application/zip\r\n\r\n" + content + b"\r\n--XX--\r\n"
    sent = request(MULTIPART, body=body)
    sent.upload = read_form(MULTIPART.encode(), body, keep_file=True)
    assert read_fields(sent).values == {"source": "en"}
    assert (sent.upload.file_name, sent.upload.content) == ("a.docx", content)


@pytest.mark.parametrize(
    ("media", "body"),
    [
        (JSON, b"{"),
        (JSON, b"\xff"),
        (JSON, b'{"q": "\\ud800"}'),
        (JSON, b'{"q": ' + b"[" * 100_000),
        (FORM, b"\xff"),
        (FORM, b"q=%FF"),
        (FORM, b"q=a&" * 5000),
        ("multipart/form-data", b"q"),
        (MULTIPART, b"nothing of a form"),
        (MULTIPART, part("q", "a").encode() * 5000 + b"--XX--"),
        (MULTIPART, b'--XX\r\nContent-Disposition: form-data; name="q"\r\n\r\n\xff\r\n--XX--\r\n'),
    ],
)
def test_unreadable_bodies_are_malformed(media: str, body: bytes) -> None:
    with pytest.raises(MalformedRequestError):
        read_fields(request(media, body=body))


@pytest.mark.parametrize("body", [b"[]", b'"q"', b"3"])
def test_json_has_to_be_an_object(body: bytes) -> None:
    with pytest.raises(InvalidFieldError, match="must be a JSON object"):
        read_fields(request(JSON, body=body))


def test_a_field_of_the_wrong_type_is_named() -> None:
    found = read_fields(request(JSON, body=b'{"source": ["en"], "target": 3, "format": null}'))
    for name in ("source", "target"):
        with pytest.raises(InvalidFieldError, match=name):
            found.required(name)
    assert found.text("format") == ""
    with pytest.raises(InvalidFieldError, match="missing format parameter"):
        found.required("format")
    assert read_fields(request(FORM, body=b"source=en&source=de")).required("source") == "en"


ANY_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
NAMES = st.sampled_from(["q", "source", "target", "format", "alternatives", "api_key", "x"])
LIKELY = st.fixed_dictionaries(
    {},
    optional={
        "q": st.one_of(st.text(), st.lists(st.text()), ANY_VALUE),
        "source": st.one_of(st.sampled_from(["en", "auto", "zh", "AUTO"]), st.text(), ANY_VALUE),
        "target": st.one_of(st.sampled_from(["de", "zt"]), st.text(), ANY_VALUE),
        "format": st.one_of(st.sampled_from(["text", "html"]), ANY_VALUE),
        "alternatives": st.one_of(st.integers(0, 10), st.text(), ANY_VALUE),
    },
)


def read_or_refuse(media: str, body: bytes, query: str = "") -> None:
    requested = request(media, query, body)
    speaks_libretranslate(requested)
    with suppress(CallerError):
        assert all(text.strip() for call in READING.read(requested, SITE).requests for text in call.texts)


@given(LIKELY)
@example({"q": "a", "source": "en", "target": "de", "alternatives": 10**4000})
@example({"q": "a", "source": "en", "target": "de", "alternatives": "9" * 5000})
@example({"q": "a", "source": "en", "target": "de", "alternatives": float("inf")})
def test_any_json_is_read_or_refused(message: dict[str, Any]) -> None:
    read_or_refuse(JSON, json.dumps(message).encode())


@given(st.lists(st.tuples(NAMES, st.text()), max_size=8))
def test_any_form_or_query_is_read_or_refused(message: list[tuple[str, str]]) -> None:
    encodable = [(name, value.encode("utf-8", "replace").decode()) for name, value in message]
    read_or_refuse(FORM, urlencode(encodable).encode())
    read_or_refuse("", b"", urlencode(encodable))


@given(
    st.sampled_from(
        [
            FORM,
            JSON,
            MULTIPART,
            "multipart/form-data",
            "a/b+json",
            "",
            "\xff;;=",
            'multipart/form-data; boundary="',
        ]
    ),
    st.binary(max_size=200),
    st.text("q=a&%+\xff;", max_size=20),
)
def test_any_bytes_are_read_or_refused(media: str, body: bytes, query: str) -> None:
    read_or_refuse(media, body, query)


PIECES = st.sampled_from(
    [
        b"--XX",
        b"\r\n",
        b"--",
        b'Content-Disposition: form-data; name="q"',
        b"Content-Disposition: form-data",
        b'; filename="a.txt"',
        b"Content-Transfer-Encoding: base64\r\n",
        b"Content-Transfer-Encoding: x\r\n",
        b"a",
        b"\xff",
        b":",
        b"filename*=UTF-8''%ff",
        b"\0",
    ]
)


@given(st.lists(PIECES, max_size=25))
def test_any_multipart_is_read_or_refused(pieces: list[bytes]) -> None:
    read_or_refuse(MULTIPART, b"".join(pieces))
