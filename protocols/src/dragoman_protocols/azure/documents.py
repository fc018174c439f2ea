"""`/translator/document:translate`: a document is translated within the request, and is the answer.

Sources: https://learn.microsoft.com/azure/ai-services/translator/document-translation/reference/translate-document
and the client azure-ai-translation-document 1.1.0 (`SingleDocumentTranslationClient`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePath

from dragoman_protocols.azure.head import AzureError, id_headers, parameters
from dragoman_protocols.azure.translate import CODES
from dragoman_protocols.calls import Peek, Reading, TranslateFile
from dragoman_protocols.documents import Document
from dragoman_protocols.files import media_type, translated_ending
from dragoman_protocols.forms import last
from dragoman_protocols.glossaries.entries import read_entries
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import primary
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.multipart import Upload
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import TranslationRequest


@dataclass(frozen=True)
class Parsed:
    """An upload.

    Args:
        source: Code of its language; None: detected.
        target: The same of the translation.
        headers: Of the answer.
    """

    upload: Upload
    source: str | None
    target: str
    headers: tuple[tuple[str, str], ...]


def parse(request: Request) -> Parsed:
    """The form and the parameters of an upload."""
    query, upload = parameters(request), request.upload
    target = last(query, "targetLanguage")
    if not target:
        raise AzureError(400036, "targetLanguage is missing in the query")
    if upload is None:
        raise AzureError(400000, "the body is no form with a part document; send multipart/form-data")
    return Parsed(upload, last(query, "sourceLanguage") or None, target, id_headers(request))


def find(parsed: Parsed, offer: Offer) -> Peek:
    """The pair of an upload, and a sample of its text."""
    source = None if parsed.source is None else CODES.tag(parsed.source, offer.listed_sources, "source")
    target = CODES.tag(parsed.target, offer.listed_targets)
    return Peek((Need(source, (target,), keeps=True),), 0, sample=parsed.upload.sample)


def call(parsed: Parsed, found: Peek, _: Site) -> TranslateFile:
    """A file, with the terms of its glossaries."""
    name = parsed.upload.file_name
    if not name:
        raise AzureError(400000, "the part document is missing, or has no file name, which shows its format")
    ending = PurePath(name).suffix.lower()
    if translated_ending(ending) != ending:
        raise AzureError(
            400000, f"{ending} is translated into {translated_ending(ending)}: use the endpoint /documents"
        )
    (need,) = found.needs
    (target,) = need.targets
    terms = _terms(parsed.upload.glossary, need.source, target)

    def deliver(document: Document, content: bytes) -> Answer:
        return Answer(200, content, (("Content-Type", media_type(document.name)), *parsed.headers))

    request = TranslationRequest((), target, need.source, terms=terms)
    return TranslateFile(name, parsed.upload.content, request, lambda _: json_answer({}), deliver=deliver)


def _terms(content: bytes, source: str | None, target: str) -> tuple[Term, ...]:
    """The entries of glossaries in TSV or CSV; with a tab in the first line they are TSV."""
    if not content:
        return ()
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise AzureError(400000, "glossary: expected CSV or TSV in UTF-8") from None
    if text.lstrip().startswith("<"):
        raise AzureError(400000, "glossary: expected CSV or TSV; XLIFF is not supported")
    written = "tsv" if "\t" in text.partition("\n")[0] else "csv"
    entries = read_entries(text, written, "" if source is None else primary(source), primary(target))
    return tuple(Term(entry.source, entry.target) for entry in entries)


READING = Reading(parse, find, call)
