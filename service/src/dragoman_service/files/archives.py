"""Office documents and books as what they are: zip archives of XML, read within bounds and written again."""

from __future__ import annotations

import io
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property

from lxml import etree

from dragoman_protocols.errors import BrokenFileError, GenerationError

MAX_UNPACKED_BYTES = 64 * 1024 * 1024
"""A kilobyte can unpack to a megabyte; this is what all entries together may have."""

MAX_ENTRIES = 10_000

MAX_PREFIX_BYTES = 64
"""Of a namespace: each element that a translation adds is written with it."""

LONG_PREFIX = re.compile(rb"\sxmlns:[^\s=]{%d}" % (MAX_PREFIX_BYTES + 1))

ROOT_BYTES = 64 * 1024
"""Of an XML part, in which its root is found; as a rule it is in the first `FED_BYTES`."""
FED_BYTES = 4 * 1024
PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
"""Of an XML part in UTF-8: what stands before its root."""
BEFORE_XML = b"\xef\xbb\xbf\xff\xfe \t\r\n"
"""Byte order marks and white space."""

UNREADABLE = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, OSError, ValueError, RuntimeError),
)
"""What zipfile raises for archives that are cut off, encrypted, or otherwise wrong."""

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Compression of these kinds of documents. zipfile unpacks the others without a bound."""


class Archive:
    """A zip archive in memory.

    Raises:
        BrokenFileError: It is none, or unpacks to more than is read.
    """

    def __init__(self, content: bytes) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(content))
        except UNREADABLE:
            raise BrokenFileError("the file is no document of this kind: it cannot be unpacked") from None
        entries = self._zip.infolist()
        if len(entries) > MAX_ENTRIES:
            raise BrokenFileError(
                f"the file has {len(entries)} parts; at most {MAX_ENTRIES} are read, split it"
            )
        self.unpacked_bytes = sum(entry.file_size for entry in entries)
        if self.unpacked_bytes > MAX_UNPACKED_BYTES:
            raise BrokenFileError(f"the file unpacks to more than {MAX_UNPACKED_BYTES} bytes; split it")
        # Some programs write backslashes. A name is written as the format has it.
        self._entries = {entry.filename.replace("\\", "/"): entry for entry in entries}
        self.names = tuple(self._entries)

    def size_bytes(self, names: Iterable[str]) -> int:
        """What these entries have together, unpacked."""
        return sum(self._entries[name].file_size for name in names)

    def part(self, name: str) -> bytes:
        """One entry, unpacked up to the size that the archive has for it.

        Raises:
            BrokenFileError: It is missing, cut off, encrypted, larger, or compressed by another method.
        """
        if name not in self._entries:
            raise BrokenFileError(f"the file is damaged: it has no {name[:80]!r}")
        # Without a number all is unpacked at once, and only then compared with that size.
        return self._unpacked(name, self._entries[name].file_size + 1)

    @cached_property
    def kinds(self) -> Mapping[str, tuple[str, str]]:
        """Namespace and name of the root of each XML part, found in its first bytes.

        Raises:
            BrokenFileError: A part cannot be read.
        """
        found = {name: self._kind(name) for name in self.names if not name.endswith("/")}
        return {name: kind for name, kind in found.items() if kind is not None}

    def _kind(self, name: str) -> tuple[str, str] | None:
        beginning = self._unpacked(name, ROOT_BYTES)
        if not beginning.lstrip(BEFORE_XML).startswith((b"<", b"\0<")):
            return None
        parser = etree.XMLPullParser(("start",), resolve_entities=False, no_network=True, load_dtd=False)
        for start in range(0, len(beginning), FED_BYTES):
            with suppress(etree.XMLSyntaxError):  # It may be behind the root.
                parser.feed(beginning[start : start + FED_BYTES])
            for _, root in parser.read_events():
                found = etree.QName(root)
                return found.namespace or "", found.localname
        return None

    def _unpacked(self, name: str, size_bytes: int) -> bytes:
        entry = self._entries[name]
        try:
            if entry.compress_type not in METHODS:
                raise zipfile.BadZipFile
            with self._zip.open(entry) as unpacked:
                return unpacked.read(size_bytes)
        except UNREADABLE:
            raise BrokenFileError(f"the file is damaged or encrypted: {name[:80]!r} cannot be read") from None

    def replacing(self, parts: Mapping[str, bytes]) -> bytes:
        """The archive with some entries replaced; order, time and compression of all stay as they were.

        Args:
            parts: By name.

        Raises:
            BrokenFileError: An entry cannot be read.
        """
        written = io.BytesIO()
        with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in self.names:
                entry = self._entries[name]
                stored = entry.compress_type == zipfile.ZIP_STORED
                copied = zipfile.ZipInfo(name, entry.date_time)
                copied.external_attr = entry.external_attr
                copied.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
                archive.writestr(copied, parts[name] if name in parts else self.part(name))
        return written.getvalue()


def parsed(content: bytes, *, keep_cdata: bool = False) -> etree._Element:
    """The root of an XML part.

    Entities are not expanded and nothing is fetched; a part with a document type, which no office document
    has, is refused.

    Raises:
        BrokenFileError: It is not well-formed, has a document type, or a prefix that is too long.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, strip_cdata=not keep_cdata
    )
    try:
        root = etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError):
        raise BrokenFileError("the file is damaged: a part of it is not well-formed XML") from None
    if root.getroottree().docinfo.doctype:
        raise BrokenFileError("the file has a document type, which documents of this kind do not have")
    is_ascii = (root.getroottree().docinfo.encoding or "").upper() in ("UTF-8", "ASCII", "US-ASCII")
    if LONG_PREFIX.search(content if is_ascii else etree.tostring(root, encoding="UTF-8")):
        raise BrokenFileError(f"the file has a namespace prefix of more than {MAX_PREFIX_BYTES} bytes")
    return root


def serialized(root: etree._Element, before: bytes) -> bytes:
    """A part that has been changed, with what stood around its root: byte order mark, declaration, comments.

    Args:
        root: The root, as `parsed` returned it.
        before: The part before the change.
    """
    tree = root.getroottree()
    if (tree.docinfo.encoding or "UTF-8").upper() != "UTF-8":
        standalone = tree.docinfo.standalone
        return bytes(etree.tostring(tree, xml_declaration=True, encoding="UTF-8", standalone=standalone))
    written = etree.tostring(tree, encoding="UTF-8")
    after = before[len(before.rstrip()) :]
    return bytes(before[: _prolog_bytes(before)] + written[_prolog_bytes(written) :] + after)


def _prolog_bytes(part: bytes) -> int:
    found = PROLOG.match(part)
    return found.end() if found else 0


def rewritten(archive: Archive, parts: Mapping[str, bytes]) -> bytes:
    """The archive with translated parts, each still well-formed if it was so.

    Raises:
        GenerationError: It is not.
    """
    for name, part in parts.items():
        if _is_well_formed(archive.part(name)) and not _is_well_formed(part):
            raise GenerationError(f"the translation of {name} came back with broken tags; ask again")
    return archive.replacing(parts)


def _is_well_formed(part: bytes) -> bool:
    try:
        etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))
    except (etree.XMLSyntaxError, ValueError):
        return False
    return True
