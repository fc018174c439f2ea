"""The texts of uploaded files."""

from contextlib import nullcontext, suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.errors import CallerError, QuotaError
from dragoman_protocols.messages import Answer, Request
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service.files.parsing import FileParser, ParsedFile, parsed
from dragoman_service.http.documents import DocumentStore, new_document
from dragoman_service.http.files import FileWork, request_for
from dragoman_service.http.lifecycle import Unfetched
from dragoman_service.http.pipeline import check_left


def read(name: str, content: bytes) -> tuple[ParsedFile, TranslationRequest | None, FileWork]:
    call = TranslateFile(name, content, TranslationRequest((), "de"), lambda _: Answer(200, b""))
    file = parsed(name, content, "de")
    request = request_for(call, file, ())
    document = new_document("native", call, None)
    return file, request, FileWork(call, document, file, request, FileParser(), DocumentStore(Unfetched()))


def test_a_file_is_read_into_texts_in_one_language() -> None:
    file, request, work = read("a.html", b"The weather is nice.")
    assert request is not None
    assert (request.target_lang, request.format) == ("de", Format.HTML)
    assert request.source_lang == work.document.source_lang == "en"
    assert file.texts == ("The weather is nice.",)
    assert work.characters == work.document.characters == 20
    assert work.cost == read("b.txt", b"The weather is nice.")[2].cost


def test_a_language_that_is_not_clear_is_left_to_the_core() -> None:
    _, request, _ = read("a.txt", b"1 2 3 %")
    assert request is not None
    assert request.source_lang is None


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_a_blank_file_has_nothing_to_translate(content: bytes) -> None:
    assert read("a.txt", content)[1] is None


@given(st.sampled_from(["a.txt", "a.html", "a.srt", "a.docx", "a.epub", "a", "\ud800"]), st.binary())
def test_any_file_is_read_or_refused_as_the_callers_error(name: str, content: bytes) -> None:
    with suppress(CallerError):
        read(name, content)


@pytest.mark.parametrize(("left", "allowed"), [("5", True), ("4", False), ("9" * 5000, True), ("-1", True)])
def test_what_is_left_of_a_quota_is_kept_to(left: str, allowed: bool) -> None:
    request = Request("POST", "/translate", b"", [(b"x-dragoman-characters-left", left.encode())])
    with nullcontext() if allowed else pytest.raises(QuotaError):
        check_left(request, 5)
