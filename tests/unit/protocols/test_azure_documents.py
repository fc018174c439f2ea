"""Uploads of documents as Azure's clients send them."""

import pytest

from dragoman_protocols.azure.documents import READING
from dragoman_protocols.azure.head import AzureError
from dragoman_protocols.calls import TranslateFile
from dragoman_protocols.documents import Document
from dragoman_protocols.errors import InvalidGlossaryError
from dragoman_protocols.messages import Request
from dragoman_protocols.multipart import read_form
from dragoman_protocols.offer import offer_of
from dragoman_protocols.site import Limits, Site

SITE = Site(offer_of([()]), ("m",), Limits(3, 1_000_000))
QUERY = "api-version=2024-05-01&targetLanguage=de&sourceLanguage=en"


def request_of(*parts: tuple[str, str, bytes], query: str = QUERY) -> Request:
    """A form whose parts are files: name, file name, content."""
    body = b"".join(
        b'--x\r\nContent-Disposition: form-data; name="%b"; filename="%b"\r\n\r\n%b\r\n'
        % (name.encode(), file_name.encode(), content)
        for name, file_name, content in parts
    )
    content_type = b"multipart/form-data; boundary=x"
    upload = read_form(content_type, body + b"--x--\r\n", keep_file=True)
    headers = [(b"content-type", content_type)]
    return Request("POST", "/translator/document:translate", query.encode(), headers, upload=upload)


def read(*parts: tuple[str, str, bytes], query: str = QUERY) -> TranslateFile:
    found = READING.read(request_of(*parts, query=query), SITE)
    assert isinstance(found, TranslateFile)
    return found


def test_a_document_its_pair_and_the_answer() -> None:
    call = read(("document", "a.txt", b"The cat sleeps."))
    assert (call.name, call.content) == ("a.txt", b"The cat sleeps.")
    assert (call.request.source_lang, call.request.target_lang, call.request.terms) == ("en", "de", ())
    assert call.deliver is not None
    answer = call.deliver(Document(None, "azure", "a.txt", "de"), b"Die Katze")  # type: ignore[arg-type]
    assert answer.body == b"Die Katze"
    assert ("Content-Type", "text/plain") in [
        (name, value.partition(";")[0]) for name, value in answer.headers
    ]


@pytest.mark.parametrize(
    "files",
    [
        [b"cat\tKater\r\ndog\tHund"],
        [b"cat,Kater\n", b"dog,Hund\n"],
        ["\ufeffcat,Kater,en,de\ncat,chat,en,fr\ndog,Hund,en,de".encode()],
    ],
)
def test_glossaries_are_terms_wherever_they_are_in_the_form(files: list[bytes]) -> None:
    parts = [("glossary", "g.csv", content) for content in files]
    call = read(*parts, ("document", "a.txt", b"The cat sleeps."))
    assert [(term.source, term.target) for term in call.request.terms] == [("cat", "Kater"), ("dog", "Hund")]
    assert call.name == "a.txt"


def test_a_router_finds_the_pair_and_a_sample() -> None:
    peek = READING.peek(
        request_of(("document", "a.txt", b"Guten Tag"), query="targetLanguage=zh-Hans"), SITE.offer
    )
    (need,) = peek.needs
    assert (need.source, need.targets, peek.sample) == (None, ("zh-Hans",), "Guten Tag")


@pytest.mark.parametrize(
    ("parts", "query", "message"),
    [
        ([("document", "a.txt", b"")], "sourceLanguage=en", "targetLanguage is missing"),
        ([("glossary", "a.csv", b"a,b")], QUERY, "the part document is missing"),
        ([("document", "a.pdf", b"%PDF-")], QUERY, "/documents"),
        ([("document", "a.txt", b""), ("glossary", "g.xlf", b" <xliff/>")], QUERY, "XLIFF"),
        ([("document", "a.txt", b""), ("glossary", "g.csv", b"\xff,b")], QUERY, "UTF-8"),
    ],
)
def test_what_is_refused(parts: list[tuple[str, str, bytes]], query: str, message: str) -> None:
    with pytest.raises(AzureError, match=message):
        read(*parts, query=query)


def test_an_entry_that_is_none_is_named() -> None:
    with pytest.raises(InvalidGlossaryError, match="columns"):
        read(("document", "a.txt", b""), ("glossary", "g.csv", b"a,b,c"))
