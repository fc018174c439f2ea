"""What `/v2/document` is sent."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.requests import Request

from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError
from dragoman_protocols.translation import Format
from dragoman_service.dialects.deepl.document_routes import state_json
from dragoman_service.dialects.deepl.documents import Document, State
from dragoman_service.dialects.deepl.fields import Fields
from dragoman_service.dialects.deepl.uploads import Upload, read_document, read_upload

MULTIPART = "multipart/form-data; boundary=x"


def part(name: str, content: str, filename: str | None = None) -> str:
    ending = "" if filename is None else f'; filename="{filename}"'
    return f'--x\r\nContent-Disposition: form-data; name="{name}"{ending}\r\n\r\n{content}\r\n'


def form(*parts: str) -> bytes:
    return "".join([*parts, "--x--\r\n"]).encode(errors="surrogatepass")


async def read(body: bytes, content_type: str = MULTIPART) -> Upload:
    headers = [(b"content-type", content_type.encode("latin-1", "replace"))] if content_type else []
    return await read_upload(Request({"type": "http", "headers": headers}), body)


async def test_a_file_comes_with_its_fields() -> None:
    uploaded = await read(form(part("target_lang", "DE"), part("file", "The weather is nice.", "a.html")))
    assert (uploaded.name, uploaded.content) == ("a.html", b"The weather is nice.")
    document, asked = read_document(uploaded, ())
    assert asked.request is not None
    assert (asked.request.target_lang, asked.request.format) == ("de", Format.HTML)
    assert asked.request.source_lang == "en"
    assert asked.texts == document.texts


async def test_a_name_of_its_own_wins() -> None:
    uploaded = await read(form(part("filename", "b.txt"), part("file", "Hello", "a")))
    assert uploaded.name == "b.txt"


@pytest.mark.parametrize(
    ("body", "content_type", "said"),
    [
        (form(), MULTIPART, "Parameter 'file' not specified"),
        (form(part("file", "no name means no file")), MULTIPART, "Parameter 'file' not specified"),
        (form(part("file", "x", "")), MULTIPART, "Invalid file data"),
        (b"x", MULTIPART, "no form with a file"),
        (form(part("file", "x", "a.txt")), "multipart/form-data", "no form with a file"),
        (b"{}", "application/json", "no form with a file"),
        (b"", "", "no form with a file"),
        (form(*[part("file", "x", "a.txt")] * 2), MULTIPART, "no form with a file: Too many files"),
        (form(*[part("f", "x")] * 101), MULTIPART, "no form with a file: Too many fields"),
    ],
)
async def test_what_is_no_upload_is_refused(body: bytes, content_type: str, said: str) -> None:
    with pytest.raises((MalformedRequestError, InvalidFieldError), match=said):
        await read(body, content_type)


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
        read_document(asyncio.run(read(body, content_type)), ())


def test_a_file_whose_language_cannot_be_told_is_left_to_the_core() -> None:
    _, asked = read_document(Upload("a.txt", b"1 2 3 %", Fields({"target_lang": ["DE"]}, is_form=True)), ())
    assert asked.request is not None
    assert asked.request.source_lang is None


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (State.TRANSLATING, {"status": "translating"}),
        (State.DONE, {"status": "done", "billed_characters": 7}),
        (State.ERROR, {"status": "error", "message": "why", "error_message": "why"}),
    ],
)
def test_the_state_is_told_in_deepls_shape(state: State, told: dict[str, object]) -> None:
    assert state_json(Document("id", "key", "a.txt", 7, state, "why")) == {"document_id": "id", **told}
