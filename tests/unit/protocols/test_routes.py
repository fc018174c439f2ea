"""Which endpoint a request is for, and every error in every API's shape."""

import json

import pytest

from dragoman_protocols.endpoints import Endpoint
from dragoman_protocols.errors import (
    CallerError,
    CapacityError,
    MethodNotAllowedError,
    RequestError,
    UnknownPathError,
)
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import offer_of
from dragoman_protocols.routes import ENDPOINTS, api_of, recognise
from dragoman_protocols.site import Limits, Site

MARKS = {"azure": b"api-version=3.0"}
"""Queries that show a request to be for an API that shares its paths."""

APIS = {endpoint.api.name: endpoint.api for endpoint in ENDPOINTS}


def all_errors(root: type[RequestError] = RequestError) -> set[type[RequestError]]:
    return {root}.union(*map(all_errors, root.__subclasses__()))


@pytest.mark.parametrize("name", APIS)
@pytest.mark.parametrize("kind", sorted(all_errors(), key=str))
def test_every_api_has_an_answer_for_every_error(name: str, kind: type[RequestError]) -> None:
    error = kind.__new__(kind, "message")
    if isinstance(error, CapacityError):
        error.retry_after_s = 7
    if isinstance(error, MethodNotAllowedError):
        error.allowed = ("GET",)
    answer = APIS[name].error(error, Request("POST", "/", b"", []))
    assert 400 <= answer.status <= 599
    assert (answer.status < 500) is isinstance(error, CallerError) or answer.status in (409, 429)
    assert json.loads(answer.body)
    assert (("Retry-After", "7") in answer.headers) is isinstance(error, CapacityError)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.api.name} {each.path}")
def test_a_wrong_method_is_refused_with_the_right_ones(endpoint: Endpoint) -> None:
    request = Request("PURGE", endpoint.path, MARKS.get(endpoint.api.name, b""), [])
    with pytest.raises(MethodNotAllowedError) as refused:
        recognise(request)
    assert refused.value.allowed
    assert api_of(request).name


def test_a_slash_at_the_end_does_not_matter() -> None:
    plain = recognise(Request("POST", "/language/translate/v2", b"", []))
    assert recognise(Request("POST", "/language/translate/v2/", b"", [])) is plain
    with pytest.raises(UnknownPathError):
        recognise(Request("POST", "/nowhere", b"", []))
    glossaries = recognise(Request("GET", "/v2/glossaries/", b"", []))
    assert glossaries is recognise(Request("GET", "/v2/glossaries", b"", []))


def test_the_openapi_document_is_answered_from_the_table() -> None:
    endpoint = recognise(Request("GET", "/openapi.json", b"", []))
    assert endpoint.respond is not None
    site = Site(offer_of([]), (), Limits(None, 1))
    paths = json.loads(endpoint.respond(Request("GET", "/openapi.json", b"", []), site).body)["paths"]
    assert paths.keys() == {each.path for each in ENDPOINTS if each.operation is not None}
