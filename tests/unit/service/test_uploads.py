"""The texts of uploaded files."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.errors import CallerError
from dragoman_protocols.messages import Answer
from dragoman_protocols.offer import offer_of
from dragoman_protocols.translation import Format, TranslationRequest
from dragoman_service.http.files import ReadFile, read_file


def read(name: str, content: bytes) -> ReadFile:
    call = TranslateFile(name, content, TranslationRequest((), "de"), lambda _: Answer(200, b""))
    return read_file(call, offer_of([()]))


def test_a_file_is_read_into_texts_in_one_language() -> None:
    file = read("a.html", b"The weather is nice.")
    assert file.request is not None
    assert (file.request.target_lang, file.request.format) == ("de", Format.HTML)
    assert file.request.source_lang == "en"
    assert file.texts == file.file.texts == ("The weather is nice.",)
    assert file.characters == 20
    assert file.cost == read("b.txt", b"The weather is nice.").cost


def test_a_language_that_is_not_clear_is_left_to_the_core() -> None:
    file = read("a.txt", b"1 2 3 %")
    assert file.request is not None
    assert file.request.source_lang is None


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_a_blank_file_has_nothing_to_translate(content: bytes) -> None:
    assert read("a.txt", content).request is None


@given(st.sampled_from(["a.txt", "a.html", "a.srt", "a.docx", "a.epub", "a", "\ud800"]), st.binary())
def test_any_file_is_read_or_refused_as_the_callers_error(name: str, content: bytes) -> None:
    with suppress(CallerError):
        read(name, content)
