"""azure-ai-translation-document as it is on PyPI: documents that are translated within the request."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from azure.ai.translation.document import SingleDocumentTranslationClient
from azure.ai.translation.document.models import DocumentTranslateContent
from azure.core.credentials import AzureKeyCredential
from azure.core.exceptions import HttpResponseError

TEXT = ("a.txt", b"The cat sleeps.\n", "text/plain")


@pytest.fixture
def client_of() -> Iterator[Callable[[Any], Any]]:
    """Makes clients whose connections end with the test."""
    with ExitStack() as stack:
        key = AzureKeyCredential("any")
        yield lambda pod: stack.enter_context(SingleDocumentTranslationClient(pod.url, key, retry_total=0))


def translate(client: Any, document: Any = TEXT, glossary: Any = None, **options: Any) -> bytes:
    """The translated document."""
    content = DocumentTranslateContent(document=document, glossary=glossary)
    return bytes(client.translate(content, **{"target_language": "de", "source_language": "en", **options}))


def test_a_document(demo_pod: Any, client_of: Any) -> None:
    assert translate(client_of(demo_pod)) == "Die Katze schläft.\n".encode()


def test_the_language_is_detected_and_the_format_kept(scripted_pod: Any, client_of: Any) -> None:
    page = ("a.html", "<p>Das Wetter ist heute schön.</p>".encode(), "text/html")
    found = translate(client_of(scripted_pod), page, source_language=None, target_language="fr")
    assert found.decode() == "<p>.nöhcs etueh tsi retteW saD</p>"


@pytest.mark.parametrize("glossary", [b"cat\tKater\r\n", "\ufeffcat,Kater\n".encode()])
def test_a_glossary_in_tsv_or_csv(scripted_pod: Any, client_of: Any, glossary: bytes) -> None:
    others = ("b.tsv", b"dog\tHund\n" if b"\t" in glossary else b"dog,Hund\n", "text/plain")
    files = [("a.tsv", glossary, "text/plain"), others]
    assert translate(client_of(scripted_pod), glossary=files) == b".speels tac ehT\n"


@pytest.mark.parametrize(
    ("document", "glossary", "target", "message"),
    [
        (TEXT, None, "xx-no-language", "names no language"),
        (("a.exe", b"MZ", "application/octet-stream"), None, "de", r"\.exe"),
        (TEXT, [("a.xlf", b"<?xml version='1.0'?><xliff/>", "application/xml")], "de", "XLIFF"),
        (TEXT, [("a.csv", b"one,two,three\n", "text/csv")], "de", "columns"),
    ],
)
def test_errors_are_azure_s(
    scripted_pod: Any, client_of: Any, document: Any, glossary: Any, target: str, message: str
) -> None:
    with pytest.raises(HttpResponseError, match=message) as refused:
        translate(client_of(scripted_pod), document, glossary, target_language=target)
    assert refused.value.status_code == 400
    assert refused.value.error.code.startswith("400")
