"""Books in EPUB 2 and 3: their chapters, tables of contents and titles.

Source: EPUB 3.3, sections 4 (container) and 5 (package document); OPF 2.0.1.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.markup_tokens import RAW_TEXT, TokenKind, tokens
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, rewritten
from dragoman_service.files.document import FileDocument
from dragoman_service.files.office import NO_DOCUMENT
from dragoman_service.files.packages import check_size, resolved, tree
from dragoman_service.files.plain import decoded, known_encoding, marked_encoding
from dragoman_service.files.root_language import ATTRIBUTES, attribute, with_attributes, with_language

CHAPTER_TYPES = frozenset(
    {"application/xhtml+xml", "text/html", "application/x-dtbncx+xml", "text/x-oeb1-document"}
)
"""Media types of a book's parts with text: chapters, and the table of contents of EPUB 2."""
CHAPTER_ENDINGS = (".xhtml", ".html", ".htm")

DECLARED = re.compile(rb"""\s*<\?xml\s[^>]{0,200}?\sencoding\s*=\s*["']([A-Za-z0-9_.:\-]{1,40})""")
XML = re.compile(r"\A\ufeff?\s*<\?xml\s|\sxmlns\s*=")
TITLE = re.compile(rf"(<(dc:title)\b{ATTRIBUTES}>)([^<]*)(?=</\2\s*>)")
LANGUAGE = re.compile(r"(<dc:language\b[^<>]*>)([^<]*)(?=</dc:language\s*>)")
SPINE = re.compile(rf"<(?:\w+:)?spine\b{ATTRIBUTES}>")
PROGRESSION = "page-progression-direction"


def read_book(content: bytes, target_lang: str) -> FileDocument:
    """An .epub file without copy protection; of its metadata, titles are translated.

    Args:
        content: The file.
        target_lang: BCP-47 tag; the book and its chapters name it as their language.

    Raises:
        BrokenFileError: It is none, or is damaged or protected.
    """
    archive = Archive(content)
    if "META-INF/container.xml" not in archive.names:
        raise BrokenFileError(f"{NO_DOCUMENT}: it has no META-INF/container.xml")
    packages, names = book_parts(archive)
    if "META-INF/rights.xml" in archive.names:
        raise BrokenFileError("the book is copy-protected")
    encodings = {name: _encoding(archive.part(name)) for name in (*names, *packages)}
    chapters = {name: _as_html(decoded(archive.part(name), encodings[name])) for name in names}
    metadata = {name: decoded(archive.part(name), encodings[name]) for name in packages}
    titles = tuple(found[3] for text in metadata.values() for found in TITLE.finditer(text))
    texts = (*chapters.values(), *titles)

    def rebuild(translations: Sequence[str]) -> bytes:
        if tuple(translations) == texts:
            return content
        parts = {
            name: with_language(
                translation, target_lang, added="xml:lang" if XML.search(translation) else "lang"
            )
            for (name, chapter), translation in zip(chapters.items(), translations, strict=False)
            if translation != chapter
        }
        left = iter(translations[len(chapters) :])
        parts |= {name: _with_titles(text, left, target_lang) for name, text in metadata.items()}
        return rewritten(
            archive, {name: part.encode(encodings[name], "xmlcharrefreplace") for name, part in parts.items()}
        )

    return FileDocument(texts, Format.HTML, rebuild)


def _encoding(part: bytes) -> str:
    """The encoding that a part declares, UTF-8 without one."""
    declared = DECLARED.match(part)
    return marked_encoding(part) or (known_encoding(declared[1].decode()) if declared else "utf-8")


def _with_titles(package: str, titles: Iterator[str], lang: str) -> str:
    """A package document with translated titles, and the language and direction of the translation."""
    package = TITLE.sub(lambda found: found[1] + next(titles), package)
    package = LANGUAGE.sub(lambda found: found[1] + lang, package, count=1)
    is_rtl = is_right_to_left(lang)

    def spine(found: re.Match[str]) -> str:
        if is_rtl or attribute(found[0], PROGRESSION) is not None:
            return with_attributes(found[0], {PROGRESSION: "rtl" if is_rtl else "ltr"})
        return found[0]

    return with_language(SPINE.sub(spine, package, count=1), lang)


def _as_html(chapter: str) -> str:
    """XHTML as HTML, which ignores that `<script/>` ends itself, and takes what follows for script."""
    return "".join(
        f"{token.raw[:-2]}></{token.name}>"
        if token.kind is TokenKind.EMPTY and token.name.lower() in RAW_TEXT
        else token.raw
        for token in tokens(chapter, html=False)
    )


def book_parts(archive: Archive) -> tuple[list[str], list[str]]:
    """The package documents of a book, and the parts with text that they name.

    A book whose package document is missing or broken has the parts whose names end as chapters' do.

    Raises:
        BrokenFileError: A part cannot be read, or they are too long together.
    """
    container = tree(archive, "META-INF/container.xml")
    named = (
        []
        if container is None
        else [resolved("", each.get("full-path") or "") for each in container.iter("{*}rootfile")]
    )
    packages = [name for name in dict.fromkeys(named) if name in archive.names]
    found: set[str] = set()
    for package in packages:
        root = tree(archive, package)
        for item in () if root is None else root.iter("{*}item"):
            if (item.get("media-type") or "").strip().lower() in CHAPTER_TYPES:
                found.add(resolved(posixpath.dirname(package), item.get("href") or ""))
    names = [name for name in archive.names if name in found]
    if not names:
        names = [name for name in archive.names if name.lower().endswith(CHAPTER_ENDINGS)]
    check_size(archive, names)
    return packages, names
