"""Parts of office documents and books by what they are and what refers to them, never by their names.

Word Online names a document `document2.xml`, and a book's chapters may end in `.xml`.

Source: ECMA-376-2 (Open Packaging Conventions), OpenDocument 1.3 part 2, EPUB Packages 3.3.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.archives import Archive, parsed

MAX_TEXT_BYTES = 8 * 1024 * 1024
"""Of XML, which takes ten times as much as a tree: several books."""

MANIFEST = "META-INF/manifest.xml"
OBJECT = re.compile(r"application/(?:vnd\.sun\.star\.oleobject|msword|vnd\.(?:ms-|openxmlformats-))")
"""Media types of other programs' documents within an OpenDocument file."""

LEFT_RELATIONS = ("/aFChunk", "/package", "/oleObject", "/subDocument")
"""Ends of the types of relationships to documents within a document."""


def office_parts(archive: Archive, kinds: Iterable[tuple[str, str]]) -> list[str]:
    """The names of the XML parts whose roots are of these kinds.

    Args:
        archive: A document.
        kinds: Pairs: what the root's namespace contains, and its local name.

    Raises:
        BrokenFileError: A part cannot be read.
    """
    wanted = tuple(kinds)
    return [name for name, kind in archive.kinds.items() if _is_one_of(kind, wanted)]


def _is_one_of(kind: tuple[str, str], kinds: Iterable[tuple[str, str]]) -> bool:
    return any(kind[1] == name and namespace in kind[0] for namespace, name in kinds)


def check_size(archive: Archive, names: Iterable[str]) -> None:
    """Refuse parts with too much text.

    Raises:
        BrokenFileError: They have it.
    """
    if archive.size_bytes(names) > MAX_TEXT_BYTES:
        raise BrokenFileError(f"the text of the file has more than {MAX_TEXT_BYTES} bytes; split it")


def left_parts(archive: Archive) -> tuple[str, ...]:
    """Documents within an office document, the workbooks of charts among them: they stay as they are.

    Raises:
        BrokenFileError: The relationships cannot be read.
    """
    names = [name for name in archive.names if name.endswith(".rels")]
    check_size(archive, names)
    found = (target for name in names for target in _embedded(archive, name))
    return tuple(dict.fromkeys(target for target in found if target in archive.names))


def left_objects(archive: Archive) -> tuple[str, ...]:
    """Objects of other programs within an OpenDocument file; its formulas, charts and drawings are parts.

    Raises:
        BrokenFileError: The manifest cannot be read.
    """
    root = tree(archive, MANIFEST) if MANIFEST in archive.names else None
    found = {
        name
        for entry in (() if root is None else root.iter("{*}file-entry"))
        if any(kind.endswith("}media-type") and OBJECT.match(value) for kind, value in entry.attrib.items())
        for key, name in entry.attrib.items()
        if key.endswith("}full-path")
    }
    return tuple(name for name in archive.names if name in found)


def _embedded(archive: Archive, name: str) -> Iterator[str]:
    folder = posixpath.dirname(posixpath.dirname(name))
    for relation in parsed(archive.part(name)).iter("{*}Relationship"):
        kind = relation.get("Type") or ""
        if kind.endswith(LEFT_RELATIONS) and relation.get("TargetMode") != "External":
            yield resolved(folder, relation.get("Target") or "")


def resolved(folder: str, target: str) -> str:
    """The name of the part that a reference in a part of this folder means."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def tree(archive: Archive, name: str) -> etree._Element | None:
    """The root of a part that may have a document type; None where it is not well-formed.

    Raises:
        BrokenFileError: It is too long, or missing.
    """
    check_size(archive, [name])
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(archive.part(name), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
