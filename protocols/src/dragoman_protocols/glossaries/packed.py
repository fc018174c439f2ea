"""Glossaries as routers send them to engine pods: compressed, and identified by the hash of their content.

The exchange is described in `routing.py`; the content is opaque here.
"""

from __future__ import annotations

import gzip
import hashlib
import hmac
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

MAX_PACKED_BYTES = 1024 * 1024
"""Maximum compressed size: that of a ConfigMap."""

MAX_DOCUMENT_BYTES = 8 * 1024 * 1024
"""Maximum uncompressed size: 900,000 bytes of the shortest terms become seven million as JSON."""

GZIP = 31
"""zlib's number for the gzip format with its largest window."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A compressed glossary.

    Args:
        glossary_id: A UUID in its usual form, lower case.
        revision: 64 hexadecimal digits: SHA-256 of the document.
        content: The document in gzip.
        owner: Caller who may name it, known to the router alone; None: all callers may.
    """

    glossary_id: str
    revision: str
    content: bytes
    owner: str | None = None


def revision_of(document: bytes) -> str:
    """The revision of a document: 64 hexadecimal digits."""
    return hashlib.sha256(document).hexdigest()


def pack(glossary_id: str, document: bytes) -> Packed:
    """Compress a document; equal documents give equal bytes. Takes 50 ms for a large one: call it in a thread."""
    return Packed(glossary_id, revision_of(document), gzip.compress(document, mtime=0))


def unpack(content: bytes, revision: str | None = None) -> bytes:
    """The document of `Packed.content`.

    Raises:
        ValueError: It is not gzip, is longer than `MAX_DOCUMENT_BYTES`, or does not have this revision.
    """
    reading = zlib.decompressobj(GZIP)
    try:
        document = reading.decompress(content, MAX_DOCUMENT_BYTES + 1)
    except zlib.error as error:
        raise ValueError(f"not gzip: {error}") from None
    if len(document) > MAX_DOCUMENT_BYTES:
        raise ValueError(f"more than {MAX_DOCUMENT_BYTES} bytes unpacked")
    if not reading.eof or reading.unused_data:
        raise ValueError("the gzip stream ends too early, or something follows it")
    if revision is not None and not hmac.compare_digest(revision_of(document).encode(), revision.encode()):
        raise ValueError("the content does not have this revision")
    return document


def named(glossaries: Iterable[Packed]) -> str:
    """The value of `GLOSSARIES_HEADER` for these."""
    return ", ".join(f"{each.glossary_id}={each.revision}" for each in glossaries)


def revisions(header: str | None) -> Mapping[str, str]:
    """The revision of each id in `GLOSSARIES_HEADER`; empty without the header."""
    pairs = (part.strip().partition("=") for part in (header or "").split(","))
    return {glossary_id: revision for glossary_id, _, revision in pairs if glossary_id and revision}
