"""Documents as jobs, and the native API for them."""

import json
from typing import Any
from uuid import UUID

import pytest

from dragoman_protocols import native_documents
from dragoman_protocols.calls import Peek, TranslateFile
from dragoman_protocols.documents import Document, State, result_name
from dragoman_protocols.errors import BrokenFileError, InvalidFieldError, MalformedRequestError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import Upload
from dragoman_protocols.native_documents import content_disposition, describe
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import Formality, OnFinding, Split

SITE = Site(offer_of([()]), ("m",), Limits(3, 1_000_000))
ID = UUID(int=10)


def document(state: State = State.TRANSLATING, characters: int | None = 100, **fields: Any) -> Document:
    return Document(ID, "native", "a.txt", "de", state=state, characters=characters, **fields)


def test_a_document_is_charged_once_and_a_failure_refunds_it_once() -> None:
    found = document(State.QUEUED, None)
    assert found.charge() == 0
    found.characters = 7
    assert [found.charge(), found.charge()] == [7, 0]
    found.state = State.FAILED
    assert [found.charge(), found.charge()] == [-7, 0]


def test_a_cancelled_document_is_charged_for_what_was_translated() -> None:
    found = document(share=0.25)
    assert found.charge() == 100
    found.state = State.CANCELLED
    assert [found.charge(), found.charge()] == [-75, 0]


def test_the_time_that_remains_is_estimated_by_the_share_that_is_done() -> None:
    found = document(started_s=100.0)
    assert found.seconds_remaining(200.0) is None
    found.advance(0.25)
    assert found.seconds_remaining(110.0) == 30
    found.advance(1.0)
    assert found.seconds_remaining(111.0) == 0
    found.state = State.DONE
    assert found.seconds_remaining(112.0) is None


@pytest.mark.parametrize(
    ("name", "expected"), [("a.TXT", "a.txt"), ("a b.pdf", "a b.docx"), ("x/y.md", "y.md")]
)
def test_a_translation_can_be_a_file_of_another_kind(name: str, expected: str) -> None:
    assert result_name(name) == expected


def read(fields: dict[str, list[str]], **upload: Any) -> TranslateFile:
    content = {"file_name": "a.html", "content": b"<p>Hello", **upload}
    request = Request("POST", "/documents", b"", [], upload=Upload(fields, "Hello", **content))
    return native_documents.READING.read(request, SITE)


def peeked(fields: dict[str, list[str]]) -> Peek:
    request = Request("POST", "/documents", b"", [], upload=Upload(fields, "Hello"))
    return native_documents.READING.peek(request, SITE.offer)


def test_an_upload_has_the_options_of_translate_and_tags_stay_as_they_were_given() -> None:
    call = read(
        {
            "target_lang": ["zh-Hant"],
            "source_lang": ["en"],
            "glossary_ids": ["a", "b"],
            "formality": ["more"],
            "instructions": ["Be brief.", "No emoji."],
            "split": ["none"],
            "on_finding": ["fail"],
            "ignore_unsupported": ["true"],
            "timeout_s": ["2.5"],
        }
    )
    wanted = call.request
    assert (call.name, call.content, call.glossary_ids) == ("a.html", b"<p>Hello", ("a", "b"))
    assert (wanted.texts, wanted.target_lang, wanted.source_lang) == ((), "zh-Hant", "en")
    assert (wanted.formality, wanted.split, wanted.on_finding) == (Formality.MORE, Split.NONE, OnFinding.FAIL)
    assert (wanted.instructions, wanted.timeout_s) == (("Be brief.", "No emoji."), 2.5)
    assert wanted.ignore_unsupported


@pytest.mark.parametrize("as_file", [True, False])
def test_terms_are_those_of_translate(as_file: bool) -> None:
    terms = '[{"source": "pod", "target": "Pod"}]'
    fields = {"target_lang": ["de"], **({} if as_file else {"terms": [terms]})}
    call = read(fields, terms=terms.encode() if as_file else b"")
    assert call.request.terms == (Term("pod", "Pod"),)


@pytest.mark.parametrize("source", [[], ["auto"]])
def test_the_source_language_is_optional(source: list[str]) -> None:
    fields = {"target_lang": ["de"], **({"source_lang": source} if source else {})}
    assert read(fields).request.source_lang is None
    assert peeked(fields) == Peek((Need(None, ("de",)),), 0, sample="Hello")


def test_a_router_finds_the_pair_beside_fields_of_a_newer_pod() -> None:
    fields = {"target_lang": ["zh-hant"], "source_lang": ["en"], "glossary_id": ["a"], "new": ["x"]}
    assert peeked(fields) == Peek((Need("en", ("zh-Hant",)),), 0, glossary_ids=("a",), sample="Hello")


@pytest.mark.parametrize(
    ("fields", "upload", "message"),
    [
        ({}, {}, "target_lang is required"),
        ({"target_lang": ["de"]}, {"file_name": None}, "file is required"),
        ({"target_lang": ["de"]}, {"file_name": ""}, "file must have a name"),
        ({"target_lang": ["de"], "formality": ["loud"]}, {}, "formality must be one of default, more"),
        ({"target_lang": ["de"], "timeout_s": ["x"]}, {}, "timeout_s must be a number"),
        ({"target_lang": ["de"], "document_key": ["x"]}, {}, "'document_key' is no field of this request"),
        ({"target_lang": ["de"], "glossary_ids": ["a"] * 6}, {}, "glossary_ids must have at most 5"),
        ({"target_lang": ["de"]}, {"terms": b'[{"source": "a"}]'}, r"terms\[0\].target is required"),
        ({"target_lang": ["de"]}, {"terms": b"[" * 2**20 + b"]"}, "terms is longer than 1048576 bytes"),
    ],
)
def test_what_cannot_be_read_is_refused(fields: dict[str, list[str]], upload: Any, message: str) -> None:
    with pytest.raises(InvalidFieldError, match=message):
        read(fields, **upload)


def test_a_body_that_is_no_form_is_refused() -> None:
    with pytest.raises(MalformedRequestError):
        native_documents.READING.read(Request("POST", "/documents", b"", [], body=b"{}"), SITE)


def test_a_document_is_described() -> None:
    answer = describe(document(State.QUEUED, None), 202)
    assert (answer.status, answer.headers) == (202, ())
    assert json.loads(answer.body) == {
        "id": ID.hex,
        "state": "queued",
        "name": "a.txt",
        "characters": None,
        "progress": 0.0,
        "source_lang": None,
        "target_lang": "de",
        "findings": {},
    }
    failed = document(State.FAILED, error=BrokenFileError("it is damaged"), expires_s=1.5)
    described = json.loads(describe(failed).body)
    assert described["error"] == {"code": "broken_file", "message": "it is damaged"}
    assert described["expires_at"] == "1970-01-01T00:00:01+00:00"
    assert describe(document()).headers == (("X-Dragoman-Characters", "100"),)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a.txt", "attachment; filename=\"a.txt\"; filename*=UTF-8''a.txt"),
        ('ü"\r\n.md', "attachment; filename=\"_.md\"; filename*=UTF-8''%C3%BC%22%0D%0A.md"),
        ("\ud800.md", "attachment; filename=\"_.md\"; filename*=UTF-8''%3F.md"),
    ],
)
def test_any_name_is_a_header(name: str, header: str) -> None:
    assert content_disposition(name) == header
