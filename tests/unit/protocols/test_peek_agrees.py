"""What a router peeks in a request is what the pod reads in it: for every API, over likely and hostile requests."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_contract.languages import Languages
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.chat import Chat
from dragoman_protocols.endpoints import Endpoint, EndpointKind
from dragoman_protocols.errors import CallerError
from dragoman_protocols.forms import fields_of
from dragoman_protocols.languages import canonical
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import offer_of
from dragoman_protocols.openapi import schema_of
from dragoman_protocols.routes import ENDPOINTS, recognise, with_body
from dragoman_protocols.site import Limits, Site

SERVED = (
    Languages(source="en", targets=("de", "zh-Hans", "pt-BR", "nb")),
    Languages(source="iw", targets=("en", "zh-TW")),
)
SITE = Site(offer_of([SERVED]), ("m",), Limits(50, 1_000_000))

FORM = b"application/x-www-form-urlencoded"

CODES = st.sampled_from(
    [
        "en",
        "DE",
        "auto",
        "",
        "zh",
        "zh-CN",
        "zh-tw",
        "iw",
        "he",
        "tl",
        "no",
        "pt_BR",
        " de",
        "x" * 40,
        "en-",
        "*",
    ]
)
NAMES = st.sampled_from(["German", "Traditional Chinese", "hebrew", "Lao", "nothing", "de", "iw", "AUTO"])
TEXTS = st.one_of(st.text(max_size=5), st.lists(st.text(max_size=5), max_size=3), st.none(), st.integers())
LIKELY = st.one_of(st.sampled_from(["en", "de", "zh", "zh-Hans", "pt-BR", "he"]), CODES)
SCRIPTS = st.sampled_from(["Hant", "Latn", "", None])
ANY = st.one_of(
    CODES, TEXTS, st.booleans(), st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2)
)


MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "developer", "user", "user", "user", "assistant", "tool"]),
        "content": st.one_of(
            st.text(max_size=5),
            st.lists(
                st.fixed_dictionaries({"type": st.just("text"), "text": st.text(max_size=3)}), max_size=2
            ),
            ANY,
        ),
    }
)


def _fields(likely: Mapping[str, Any]) -> Any:
    """JSON objects of an API's fields, mostly with values of the right type."""
    return st.fixed_dictionaries(
        {}, optional={name: st.one_of(values, ANY) for name, values in likely.items()}
    )


_GLOSSARIES = st.sampled_from(["", "a", "a,b", " a , b ,", ",", "a,b,c,d,e,f"])
_DEEPL: dict[str, Any] = {
    "text": st.lists(st.text(max_size=5), min_size=1, max_size=3),
    "target_lang": st.sampled_from(["DE", "de", "PT-BR", "EN-US", "zh-tw", "NB", "he", "xx"]),
}
_DEEPL_OPTIONS: dict[str, Any] = {
    "source_lang": st.sampled_from(["EN", "IW", "he", "eng", "EN-GB", ""]),
    "glossary_id": _GLOSSARIES,
    "glossary_ids": st.one_of(_GLOSSARIES, st.lists(_GLOSSARIES, max_size=3)),
    "formality": st.sampled_from(["more", "prefer_less", "loud"]),
    "filename": st.sampled_from(["a.txt", "b.docx", ""]),
}

FIELDS: dict[str, Any] = {
    "azure": st.fixed_dictionaries(
        {
            "api-version": st.sampled_from(["3.0", "2026-06-06"]),
            "to": st.lists(LIKELY, max_size=3),
        },
        optional={
            "from": st.one_of(LIKELY, ANY),
            "fromScript": SCRIPTS,
            "textType": st.sampled_from(["plain", "HTML"]),
        },
    ),
    "deepl": st.one_of(
        st.fixed_dictionaries(_DEEPL, optional=_DEEPL_OPTIONS), _fields({**_DEEPL, **_DEEPL_OPTIONS})
    ),
    "openai": _fields(
        {
            "model": st.sampled_from(["m", "other"]),
            "messages": st.lists(MESSAGES, max_size=3),
            "translation_options": st.one_of(
                st.none(),
                st.fixed_dictionaries(
                    {"target_lang": NAMES}, optional={"source_lang": st.one_of(NAMES, CODES)}
                ),
            ),
            "stream": st.booleans(),
        }
    ),
}
"""By the name of an API whose requests `_drawn` cannot make from its types."""

_TARGET = st.fixed_dictionaries({"language": LIKELY}, optional={"script": SCRIPTS})
_INPUT = st.fixed_dictionaries(
    {"text": st.text(max_size=5), "targets": st.lists(_TARGET, max_size=3)},
    optional={"language": st.one_of(LIKELY, st.none()), "script": SCRIPTS},
)
BODIES: dict[str, Any] = {
    "azure": st.one_of(
        st.lists(st.fixed_dictionaries({"Text": st.text(max_size=5)}), max_size=3),
        st.lists(st.one_of(_fields({"Text": TEXTS, "text": TEXTS}), ANY), max_size=3),
        st.fixed_dictionaries({"inputs": st.lists(_INPUT, min_size=1, max_size=3)}),
        _fields({"inputs": st.lists(st.one_of(_INPUT, ANY), max_size=3)}),
    )
}
"""JSON bodies, where they have not the fields of the query."""


def _drawn(endpoint: Endpoint) -> Any:
    """What JSON bodies, forms and queries are drawn from: the fields of the OpenAPI document."""
    assert endpoint.operation is not None
    schema = schema_of(next(iter(endpoint.operation.bodies.values())))
    likely = {name: _values(name, described) for name, described in schema["properties"].items()}
    required = {name: likely.pop(name) for name in schema["required"]}
    return st.one_of(st.fixed_dictionaries(required, optional=likely), _fields(required | likely))


def _values(name: str, described: Mapping[str, Any]) -> Any:
    """Likely values of a field, by its name and its schema."""
    for each in (described, *described.get("anyOf", ())):
        if "enum" in each:
            return st.sampled_from(each["enum"])
    if "lang" in name or name in ("source", "target"):
        return LIKELY
    return TEXTS if "text" in name or name == "q" else ANY


READ = [endpoint for endpoint in ENDPOINTS if endpoint.reading is not None]
DRAWN = {
    endpoint: FIELDS[endpoint.api.name] if endpoint.api.name in FIELDS else _drawn(endpoint)
    for endpoint in READ
}


def agree(expected: Endpoint, request: Request) -> None:
    found = recognise(request)
    if found is None or with_body(found, request) is not expected:
        return
    reading = expected.reading
    assert reading is not None
    try:
        call = reading.read(request, SITE)
    except CallerError:
        with suppress(CallerError):
            reading.peek(request, SITE.offer)
        return
    peeked = reading.peek(request, SITE.offer)
    if isinstance(call, Chat):
        assert (peeked.needs, peeked.characters) == ((), call.characters)
        return
    assert call.glossary_ids == peeked.glossary_ids
    requests = [call.request] if isinstance(call, TranslateFile) else call.requests
    assert isinstance(call, TranslateFile) or call.characters == peeked.characters
    pairs = {(need.source, target) for need in peeked.needs for target in need.targets}
    for each in requests:
        source = None if each.source_lang is None else canonical(each.source_lang)
        assert (source, canonical(each.target_lang)) in {
            (None if source is None else canonical(source), canonical(target)) for source, target in pairs
        }


def encoded(fields: Mapping[str, Any]) -> bytes:
    flat = [
        (name, each if isinstance(each, str) else json.dumps(each))
        for name, value in fields.items()
        for each in (value if isinstance(value, list) else [value])
    ]
    return urlencode(flat, errors="replace").encode()


@pytest.mark.parametrize("endpoint", READ, ids=lambda each: f"{each.api.name} {each.path}")
@given(data=st.data())
def test_likely_requests(endpoint: Endpoint, data: st.DataObject) -> None:
    strategy = DRAWN[endpoint]
    fields, query = data.draw(strategy), encoded(data.draw(strategy))
    document = data.draw(BODIES.get(endpoint.api.name, st.just(fields)))
    method = data.draw(st.sampled_from(sorted(endpoint.methods)))
    kind = data.draw(st.sampled_from([b"", FORM, b"application/json"]))
    if endpoint.kind is EndpointKind.FILE:
        upload = Upload(fields_of(encoded(fields), 100, "form"), "sample", "a.txt", b"sample")
        agree(endpoint, Request(method, endpoint.path, query, [], upload=upload))
        return
    for body in (b"", encoded(fields), json.dumps(document).encode()):
        for each in (b"", query):
            agree(endpoint, Request(method, endpoint.path, each, [(b"content-type", kind)], body))


@pytest.mark.parametrize("endpoint", READ, ids=lambda each: f"{each.api.name} {each.path}")
@given(body=st.binary(max_size=200), query=st.binary(max_size=50), form=st.booleans())
def test_any_bytes(endpoint: Endpoint, body: bytes, query: bytes, form: bool) -> None:
    kind = FORM if form else b"application/json"
    for method in endpoint.methods:
        agree(endpoint, Request(method, endpoint.path, query, [(b"content-type", kind)], body))
