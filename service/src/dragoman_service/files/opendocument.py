"""OpenDocument: Writer, Impress, Calc.

Footnotes, comments and frames, which stand within a sentence, are texts of their own.

Source: OpenDocument 1.3, part 3, sections 5 and 6 (text), 16 (styles), 20.186 (`fo:language`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, islice

import langcodes
from lxml import etree

from dragoman_protocols.errors import BrokenFileError, GenerationError
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import Archive, parsed, rewritten
from dragoman_service.files.document import FileDocument
from dragoman_service.files.office import NO_DOCUMENT
from dragoman_service.files.packages import check_size, left_objects, office_parts
from dragoman_service.files.root_language import ATTRIBUTES, attribute, with_attributes

KINDS = tuple((":opendocument:", each) for each in ("document-content", "document-styles", "document-meta"))
"""Roots of parts with text: what their namespaces contain, and their names."""

# fmt: off
FIELDS = frozenset({
    "text:page-number", "text:page-count", "text:date", "text:time", "text:sequence", "text:bookmark-ref",
    "text:chapter", "text:ruby-text", "text:page-continuation", "text:page-variable-get", "text:sheet-name",
    "text:author-name", "text:author-initials", "text:creator", "text:creation-date", "text:creation-time",
    "text:modification-date", "text:modification-time", "text:print-date", "text:print-time", "text:printed-by",
    "text:initial-creator", "text:editing-cycles", "text:editing-duration", "text:file-name", "text:template-name",
    "text:title", "text:subject", "text:keywords", "text:description", "text:expression", "text:text-input",
    "text:user-defined", "text:user-field-get", "text:user-field-input", "text:variable-get", "text:variable-set",
    "text:variable-input", "text:reference-ref", "text:note-ref", "text:sequence-ref", "text:bibliography-mark",
    "text:conditional-text", "text:database-display", "text:database-name", "text:database-row-number", "text:measure",
    "text:dde-connection", "text:word-count", "text:character-count", "text:paragraph-count", "text:table-count",
    "text:image-count", "text:object-count", "text:meta-field", "text:script", "text:execute-macro",
    *(f"text:sender-{each}" for each in (
        "firstname", "lastname", "initials", "title", "position", "email", "phone-private", "phone-work", "fax",
        "company", "street", "city", "postal-code", "country", "state-or-province",
    )),
    "presentation:header", "presentation:footer", "presentation:date-time",
})
"""Their text is computed by the program."""
IGNORED = frozenset({
    "office:automatic-styles", "office:styles", "office:font-face-decls", "office:scripts", "office:settings",
    "text:tracked-changes", "text:sequence-decls", "text:note-citation", "dc:creator",
    "dc:date", "dc:description", "dc:language", "dc:subject", *(f"meta:{each}" for each in (
        "creation-date", "creator-initials", "editing-cycles", "editing-duration", "generator", "initial-creator",
        "keyword", "print-date", "printed-by", "user-defined",
    )), "draw:object", "math:math", "ranges",
}) | FIELDS
BLOCKS = frozenset({"text:p", "text:h", "text:list-item", "table:table-cell", "text:note"})
INLINE = frozenset({
    "text:span", "text:a", "text:s", "text:tab", "text:line-break", "text:soft-page-break", "text:bookmark",
    "text:bookmark-start", "text:bookmark-end", "text:ruby", "text:ruby-base", "x", "text:reference-mark",
    "text:reference-mark-start", "text:reference-mark-end", "text:alphabetical-index-mark",
    "text:alphabetical-index-mark-start", "text:alphabetical-index-mark-end", "text:toc-mark",
    "text:toc-mark-start", "text:toc-mark-end", "office:annotation-end", "text:change", "text:change-start",
    "text:change-end",
})
# fmt: on


TAG = re.compile(
    r"<!--.*?-->"
    r"|<(?P<close>/)?(?P<name>text:(?:note|p|h|tracked-changes)|office:annotation|draw:frame)(?=[\s/>])"
    rf"{ATTRIBUTES}?(?P<empty>/)?>",
    re.DOTALL,
)
PARAGRAPHS = frozenset({"text:p", "text:h"})
DELETED = "text:tracked-changes"
RANGE = re.compile(
    r"<svg:desc>(?:'[^'<]{1,255}'|[^\s<'.:]{1,255})\.\$?[A-Z]{1,3}\$?\d{1,7}(?::[^<]{1,300})?</svg:desc>"
)
"""In a chart: the cells that a label comes from."""
STUB = re.compile(r'<x id="(\d{1,9})"/>')

STYLED = re.compile(rf"<style:(?P<kind>text|paragraph|page-layout|table|graphic)-properties\b{ATTRIBUTES}>")
DEFAULT = re.compile(rf"<(?P<close>/)?style:(?P<name>default-style|text-properties)\b{ATTRIBUTES}>")
LANGUAGE, DIRECTION = "fo:language", "style:writing-mode"
SCRIPTS = (("fo:", ""), ("style:", "-asian"), ("style:", "-complex"))
"""How the attributes for Western, Asian and complex scripts are named."""
NO_LANGUAGES = frozenset({None, "", "none", "zxx"})


def read_opendocument(content: bytes, target_lang: str) -> FileDocument:
    """An .odt, .odp or .ods file.

    Args:
        content: The file.
        target_lang: BCP-47 tag; styles in the language of the document name this one in the translation.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    archive = Archive(content)
    names = office_parts(archive, KINDS)
    if not any(archive.kinds[name][1] != "document-meta" for name in names):
        raise BrokenFileError(NO_DOCUMENT)
    check_size(archive, names)
    sources = [_source(archive.part(name)) for name in names]
    parts = [apart(RANGE.sub(r"<ranges>\g<0></ranges>", source)) for source in sources]
    texts = tuple(chain.from_iterable(parts))
    lang_names = _languages(sources)

    def rebuild(translations: Sequence[str]) -> bytes:
        if tuple(translations) == texts:
            return content
        left = iter(translations)
        done = (together(list(islice(left, len(part)))) for part in parts)
        named = [_with_language(part, lang_names, target_lang) for part in done]
        pairs = zip(names, sources, named, strict=True)
        return rewritten(archive, {name: part.encode() for name, source, part in pairs if part != source})

    return FileDocument(
        texts, Format.XML, rebuild, IGNORED, BLOCKS, INLINE | FIELDS, left=left_objects(archive)
    )


def _source(part: bytes) -> str:
    """A part as it is written; one with CDATA, or in another encoding than UTF-8, as lxml writes it."""
    root = parsed(part)
    encoding = (root.getroottree().docinfo.encoding or "UTF-8").upper()
    if encoding == "UTF-8" and b"<![CDATA[" not in part:
        return part.decode()
    return str(etree.tostring(root.getroottree(), encoding="unicode"))


def apart(text: str) -> list[str]:
    """A part with `<x id="…"/>` in the place of each note, comment and frame within a paragraph, and then these.

    Args:
        text: Of a part, well-formed.
    """
    outside: list[str] = []
    inner: list[str] = []
    depth = paragraphs = position = start = 0
    is_ignored = False
    for tag in TAG.finditer(text):
        if not tag["name"]:
            continue  # A comment.
        change = 0 if tag["empty"] else -1 if tag["close"] else 1
        name = tag["name"]
        if name == DELETED:
            is_ignored = change > 0
        elif name in PARAGRAPHS:
            paragraphs += change if not depth else 0
        elif not is_ignored and (paragraphs > 0 or depth):
            if change > 0 and not depth:
                start = tag.start()
            depth += change
            if change < 0 and not depth:
                outside += (text[position:start], f'<x id="{len(inner)}"/>')
                inner.append(text[start : tag.end()])
                position = tag.end()
    return ["".join([*outside, text[position:]]), *inner]


def together(texts: Sequence[str]) -> str:
    """The part of translations of what `apart` returned.

    Raises:
        GenerationError: A note, comment or frame was lost or doubled.
    """
    whole, *inner = texts
    if sorted(int(each) for each in STUB.findall(whole)) != list(range(len(inner))):
        raise GenerationError("a footnote, comment or frame was lost in the translation; ask again")
    joined = STUB.sub(lambda stub: inner[int(stub[1])], whole)
    return joined.replace("<ranges>", "").replace("</ranges>", "")


def _languages(parts: Iterable[str]) -> frozenset[str | None]:
    """The languages of a document's default styles."""
    found: set[str | None] = set()
    for part in parts:
        is_default = False
        for tag in DEFAULT.finditer(part):
            if tag["name"] == "default-style":
                is_default = not tag["close"] and not tag[0].endswith("/>")
            elif is_default:
                found.add(attribute(tag[0], LANGUAGE))
    return frozenset(found) - NO_LANGUAGES


def _with_language(part: str, before: frozenset[str | None], lang: str) -> str:
    """A part whose styles in the document's languages name another one, and whose pages and paragraphs run so."""
    tag = langcodes.Language.get(lang)
    territory = tag.territory or (tag.maximize().territory if tag.script else None) or "none"
    is_rtl = is_right_to_left(lang)

    def styled(found: re.Match[str]) -> str:
        values: dict[str, str] = {}
        if attribute(found[0], LANGUAGE) in before:
            for prefix, kind in SCRIPTS:
                if attribute(found[0], f"{prefix}language{kind}") is not None:
                    values[f"{prefix}language{kind}"] = tag.language or lang
                    values[f"{prefix}country{kind}"] = territory
        mode = attribute(found[0], DIRECTION)
        if is_rtl and (mode in ("lr-tb", "lr") or (mode is None and found["kind"] == "page-layout")):
            values[DIRECTION] = "rl-tb"
        elif not is_rtl and mode in ("rl-tb", "rl"):
            values[DIRECTION] = "lr-tb"
        return with_attributes(found[0], values) if values else found[0]

    return STYLED.sub(styled, part)
