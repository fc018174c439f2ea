"""Parts of office documents and books by what they are and what refers to them, never by their names.

Word Online names a document `document2.xml`, and a book's chapters may end in `.xml`.

Source: ECMA-376-2 (Open Packaging Conventions), OpenDocument 1.3 part 2, EPUB Packages 3.3.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from urllib.parse import unquote

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.archives import Archive, parsed

MAX_TEXT_BYTES = 8 * 1024 * 1024
"""Of XML, which takes ten times as much as a tree: several books."""

CHAPTER_TYPES = frozenset(
    {"application/xhtml+xml", "text/html", "application/x-dtbncx+xml", "text/x-oeb1-document"}
)
"""Media types of a book's parts with text: chapters, and the table of contents of EPUB 2."""
CHAPTER_ENDINGS = (".xhtml", ".html", ".htm")

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
    """Documents within an office document: they stay as they are. The data of charts are not among them.

    Raises:
        BrokenFileError: The relationships cannot be read.
    """
    names = [name for name in archive.names if name.endswith(".rels")]
    check_size(archive, names)
    found = (target for name in names for target in _embedded(archive, name))
    return tuple(dict.fromkeys(target for target in found if target in archive.names))


def _embedded(archive: Archive, name: str) -> Iterator[str]:
    folder = posixpath.dirname(posixpath.dirname(name))
    source = posixpath.join(folder, posixpath.basename(name).removesuffix(".rels"))
    is_chart = archive.kinds.get(source, ("", ""))[1] == "chartSpace"
    for relation in parsed(archive.part(name)).iter("{*}Relationship"):
        kind = relation.get("Type") or ""
        if kind.endswith(LEFT_RELATIONS) and not is_chart and relation.get("TargetMode") != "External":
            yield resolved(folder, relation.get("Target") or "")


def resolved(folder: str, target: str) -> str:
    """The name of the part that a reference in a part of this folder means."""
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


def book_parts(archive: Archive) -> tuple[list[str], list[str]]:
    """The package documents of a book, and the parts with text that they name.

    A book whose container names no package document has the parts whose names end as chapters' do.

    Raises:
        BrokenFileError: A part cannot be read, or they are too long together.
    """
    container = _tree(archive, "META-INF/container.xml")
    named = (
        []
        if container is None
        else [resolved("", each.get("full-path") or "") for each in container.iter("{*}rootfile")]
    )
    packages = [name for name in dict.fromkeys(named) if name in archive.names]
    if not packages:
        names = [name for name in archive.names if name.lower().endswith(CHAPTER_ENDINGS)]
    else:
        found: dict[str, None] = {}
        for package in packages:
            root = _tree(archive, package)
            for item in () if root is None else root.iter("{*}item"):
                if (item.get("media-type") or "").strip().lower() in CHAPTER_TYPES:
                    found[resolved(posixpath.dirname(package), item.get("href") or "")] = None
        names = [name for name in archive.names if name in found]
    check_size(archive, names)
    return packages, names


def _tree(archive: Archive, name: str) -> etree._Element | None:
    """A part that may have a document type; None where it is not well-formed."""
    check_size(archive, [name])
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        return etree.fromstring(archive.part(name), parser)
    except (etree.XMLSyntaxError, ValueError):
        return None
