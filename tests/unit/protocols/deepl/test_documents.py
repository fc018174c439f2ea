"""Uploads, and the states of documents."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman_protocols.calls import Peek, TranslateFile
from dragoman_protocols.deepl import documents
from dragoman_protocols.deepl.documents import CANCELLED, state_json
from dragoman_protocols.documents import Document, State
from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError, RequestError
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import Upload, read_form
from dragoman_protocols.offer import offer_of
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site

SITE = Site(offer_of([()]), ("m",), Limits(3, 1_000_000))
ID = UUID(int=10)
MULTIPART = "multipart/form-data; boundary=x"


def part(name: str, content: str, filename: str | None = None) -> str:
    ending = "" if filename is None else f'; filename="{filename}"'
    return f'--x\r\nContent-Disposition: form-data; name="{name}"{ending}\r\n\r\n{content}\r\n'


def form(*parts: str) -> bytes:
    return "".join([*parts, "--x--\r\n"]).encode(errors="surrogatepass")


def read(body: bytes, content_type: str = MULTIPART) -> TranslateFile:
    headers = [(b"content-type", content_type.encode("latin-1", "replace"))] if content_type else []
    request = Request("POST", "/v2/document", b"", headers)
    request.upload = read_form(request.header(b"content-type"), body, keep_file=True)
    return documents.READING.read(request, SITE)


def test_a_file_comes_with_its_fields() -> None:
    call = read(form(part("target_lang", "DE"), part("file", "The weather is nice.", "a.html")))
    assert (call.name, call.content) == ("a.html", b"The weather is nice.")
    assert (call.request.texts, call.request.target_lang, call.request.source_lang) == ((), "de", None)


def tmx(*segments: str) -> str:
    variants = "".join(
        f'<tuv xml:lang="{lang}"><seg>{text}</seg></tuv>'
        for lang, text in zip(("en", "de"), segments, strict=False)
    )
    return f'<tmx><header srclang="en"/><body><tu>{variants}</tu></body></tmx>'


@pytest.mark.parametrize("source", ["EN", ""])
def test_a_memory_comes_as_a_file_of_its_own(source: str) -> None:
    fields = part("target_lang", "DE"), part("source_lang", source)
    call = read(
        form(*fields, part("memory", tmx("a  cat", "Katze"), "m.tmx"), part("file", "Hello", "a.txt"))
    )
    assert (call.name, call.content, call.request.memory) == ("a.txt", b"Hello", {"a cat": "Katze"})
    assert read(form(*fields, part("file", "Hello", "a.txt"))).request.memory == {}


@pytest.mark.parametrize(
    ("memory", "message"),
    [
        (tmx("only English"), "memory: no segment has a translation from en into de"),
        ("<tmx>", "memory: no TMX: line 1: no element found"),
        ("<!DOCTYPE tmx [<!ENTITY a 'b'>]><tmx/>", "memory: .* declares the entity"),
        ("\ud800", "memory: no TMX in UTF-8 or UTF-16"),
    ],
)
def test_a_memory_that_cannot_be_read_is_refused(memory: str, message: str) -> None:
    fields = part("target_lang", "DE"), part("source_lang", "EN")
    with pytest.raises(InvalidFieldError, match=message):
        read(form(*fields, part("file", "Hello", "a.txt"), part("memory", memory, "m.tmx")))


def test_a_router_peeks_the_pair_the_glossaries_and_a_sample() -> None:
    fields = {"target_lang": ["DE"], "source_lang": ["EN"], "glossary_id": ["a"]}
    upload = Upload(fields, "Hello", "a.txt", b"Hello")
    request = Request("POST", "/v2/document", b"", [], upload=upload)
    peeked = documents.READING.peek(request, SITE.offer)
    assert peeked == Peek((Need("en", ("de",), keeps=True),), 0, glossary_ids=("a",), sample="Hello")


@pytest.mark.parametrize("name", ["a", "", None])
def test_a_name_of_its_own_wins(name: str | None) -> None:
    parts = [part("target_lang", "DE"), part("filename", "b.txt"), part("file", "Hello", name)]
    for each in parts, parts[::-1]:
        call = read(form(*each))
        assert (call.name, call.content) == ("b.txt", b"Hello")


DE = part("target_lang", "DE")


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (form(DE), MULTIPART, "Parameter 'file' not specified"),
        (form(DE, part("file", "x")), MULTIPART, "Invalid file data"),
        (form(DE, part("file", "x", "")), MULTIPART, "Invalid file data"),
        (form(part("file", "x", "a.txt")), MULTIPART, "Parameter 'target_lang' not specified"),
        (
            form(DE, part("file", "x", "a.txt"), part("output_format", "pdf")),
            MULTIPART,
            "'output_format' not",
        ),
        (b"x", MULTIPART, "the form cannot be read"),
        (form(part("file", "x", "a.txt")), "multipart/form-data", "no form with a file"),
        (b"{}", "application/json", "no form with a file"),
        (b"", "", "no form with a file"),
        (form(*[part("f", "x")] * 101), MULTIPART, "more than 100 parts"),
    ],
)
def test_what_is_no_upload_is_refused(body: bytes, content_type: str, message: str) -> None:
    with pytest.raises((MalformedRequestError, InvalidFieldError), match=message):
        read(body, content_type)


@given(
    st.binary()
    | st.lists(
        st.tuples(
            st.sampled_from(["file", "target_lang", "filename", "output_format"]),
            st.text(),
            st.none() | st.sampled_from(["a.txt", "a.html", "a.srt", "a.docx", "a.epub"]) | st.text(),
        ).map(lambda each: part(*each))
    ).map(lambda parts: form(part("target_lang", "DE"), *parts)),
    st.sampled_from(
        [MULTIPART, f"{MULTIPART}; charset=utf-16", "multipart/form-data; boundary=", "", "text/plain"]
    ),
)
@example(b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n", MULTIPART)
@example(form(part("file", "\ud800", "a.txt")), MULTIPART)
def test_any_upload_is_read_or_refused_as_the_callers_error(body: bytes, content_type: str) -> None:
    with suppress(CallerError):
        read(body, content_type)


def document(state: State = State.TRANSLATING, **fields: Any) -> Document:
    return Document(ID, "deepl", "a.txt", "de", secret="key", characters=7, state=state, **fields)


@pytest.mark.parametrize(
    ("state", "described"),
    [
        (State.QUEUED, {"status": "translating", "progress": 0.0}),
        (State.TRANSLATING, {"status": "translating", "progress": 0.0}),
        (State.DONE, {"status": "done", "billed_characters": 7}),
        (State.FAILED, {"status": "error", "message": "why", "error_message": "why"}),
        (State.CANCELLED, {"status": "error", "message": CANCELLED, "error_message": CANCELLED}),
    ],
)
def test_the_state_has_deepls_shape(state: State, described: dict[str, object]) -> None:
    error = RequestError("why") if state is State.FAILED else None
    found = state_json(document(state, error=error))
    assert found == {"document_id": ID.hex.upper(), **described}
