"""A glossary as the JSON document that stores keep, and that routers bring to pods."""

from __future__ import annotations

from pydantic import TypeAdapter

from dragoman_protocols.glossaries.values import StoredGlossary

_DOCUMENT = TypeAdapter(StoredGlossary)


def written(glossary: StoredGlossary) -> bytes:
    """The document; the same glossary gives the same bytes."""
    return _DOCUMENT.dump_json(glossary)


def read(document: bytes) -> StoredGlossary:
    """The glossary in a document. Takes tens of milliseconds for a large one: call it in a thread.

    Raises:
        ValueError: There is none in it.
    """
    return _DOCUMENT.validate_json(document)
