"""A router takes a request to name the glossaries that the pod takes it to name."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request as PodsRequest

from dragoman_protocols.errors import CallerError, RequestError
from dragoman_router.dialects.asking import Request
from dragoman_router.dialects.paths import DEEPL
from dragoman_service.dialects.deepl.asked import read_asked
from dragoman_service.dialects.deepl.fields import fields_of

FORM = [(b"content-type", b"application/x-www-form-urlencoded")]
JSON = [(b"content-type", b"application/json")]

PAIR = {"text": ["x"], "source_lang": "EN", "target_lang": "DE"}
WORDS = st.sampled_from(["", "a", "b", "a,b", " a , b ,", ",", "a,b,c,d,e,f"])
VALUES = st.one_of(
    st.none(), WORDS, st.lists(WORDS, max_size=6), st.integers(0, 1), st.lists(st.none(), min_size=1)
)
FIELDS = st.fixed_dictionaries({}, optional={"glossary_id": VALUES, "glossary_ids": VALUES})
FORM_FIELDS = st.lists(st.tuples(st.sampled_from(["glossary_id", "glossary_ids"]), WORDS), max_size=5)


def by_pod(body: bytes, headers: Any, query: str) -> tuple[str, ...]:
    scope = {"type": "http", "method": "POST", "path": "/v2/translate", "headers": headers}
    request = PodsRequest({**scope, "query_string": query.encode(), "server": ("pod", 80), "scheme": "http"})
    return read_asked(fields_of(request, body), (), 50).glossary_ids


def by_router(body: bytes, headers: Any, query: str) -> tuple[str, ...]:
    return DEEPL.read(Request("POST", "/v2/translate", query.encode(), list(headers), body)).glossary_ids


def agree(body: bytes, headers: Any, query: str = "") -> None:
    try:
        expected = by_pod(body, headers, query)
    except CallerError:
        # The pod says so, or the router; no glossary is looked up for nothing.
        with suppress(RequestError):
            by_router(body, headers, query)
        return
    assert by_router(body, headers, query) == expected


@given(FIELDS)
def test_in_json(fields: dict[str, Any]) -> None:
    agree(json.dumps({**PAIR, **fields}).encode(), JSON)


@given(FORM_FIELDS, FORM_FIELDS)
def test_in_a_form(fields: list[tuple[str, str]], beside: list[tuple[str, str]]) -> None:
    pair = [("text", "x"), ("source_lang", "EN"), ("target_lang", "DE")]
    agree(urlencode([*pair, *fields]).encode(), FORM, urlencode(beside))
    agree(b"", [], urlencode([*pair, *fields]))


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"glossary_id": "a"}, ("a",)),
        ({"glossary_ids": ["a", "b,c"]}, ("a", "b", "c")),
        ({"glossary_id": "a", "glossary_ids": ["b"]}, ()),
        ({"glossary_ids": list("abcdef")}, ()),
        ({"glossary_id": "a", "source_lang": None}, ()),
        ({"glossary_id": {}}, ()),
        ({}, ()),
    ],
)
def test_what_a_pod_would_refuse_names_none(fields: dict[str, Any], named: tuple[str, ...]) -> None:
    assert by_router(json.dumps({**PAIR, **fields}).encode(), JSON, "") == named
