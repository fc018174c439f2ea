"""Markdown: paragraphs, headings, list items and cells of tables; code, HTML and links' addresses stay.

CommonMark, tables, task lists, alerts and footnotes. A translated paragraph keeps its marks, escapes and lines; new
text is escaped only where it would be read as a mark.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape
from itertools import pairwise
from typing import Any

from lxml import etree
from markdown_it.token import Token

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.markdown_syntax import ATTRIBUTES, CODE, LABEL, RAW, URL, parser
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.spelling import Spelling

MAX_BYTES = 512 * 1024
"""A book. The parser takes 0.7 s for so much text, and 10 s where all of it is brackets."""

FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*(?:\n|\Z)", re.DOTALL
)
"""YAML, and Hugo's TOML."""

SPECIAL = re.compile(r"[\\`*\[\]<]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~|&(?=#?\w+;)")
AT_START = re.compile(
    r"^(\s*\d{0,9})((?<=\d)[.)](?=\s|$)|(?<!\d)(?:#{1,6}(?=\s|$)|[>|+=-]|~~~))", re.MULTILINE
)
AT_END = re.compile(r"(?<=\s)#+$")
LINE_END = re.compile(r"\r\n|\r|\n")
WORD = re.compile(r"\S+")
LINE = re.compile(r"[ \t]*\n[ \t]*")
BLANKS = re.compile(r"[ \t\n]+")
URL_MARK = re.compile(r"\0((?:https?|ftp)://[^\0]*)\0")
ATX = "#"
"""The kind of headings that begin with it."""

IN_HTML = {
    "**": ("<strong>", "</strong>"),
    "__": ("<strong>", "</strong>"),
    "*": ("<em>", "</em>"),
    "_": ("<em>", "</em>"),
    "~~": ("<del>", "</del>"),
}
"""How marks are written where a reader would not find them: between letters, or beside punctuation."""


Way = tuple[Callable[[str], str], Mapping[str, tuple[str, str]]]
"""To write a run: what is done to its text, and its marks in another form."""


@dataclass
class _Block:
    """A run of text.

    Args:
        lines: For each of its lines: its number, and from and up to which character it stands in it.
        kind: Type of the token around it.
        env: The parser's: the addresses of references.
        marks: What stands before and behind a marked part, by its number; before alone for what is no text.
        labels: Sources of the texts of links, by their numbers, that are references, too.
        words: Those of its text.
    """

    lines: list[tuple[int, int, int]]
    kind: str
    env: Mapping[str, Any]
    text: str = ""
    marks: list[tuple[str, str | None]] = field(default_factory=list)
    labels: dict[int, str] = field(default_factory=dict)
    words: set[str] = field(default_factory=set)
    spelling: Spelling = field(default_factory=lambda: Spelling(()))

    def without_new_marks(self, text: str) -> str:
        """The text with a backslash before all that could be a mark, but in words of the source."""
        return WORD.sub(
            lambda word: word[0] if word[0].casefold() in self.words else _without_marks(word[0]), text
        )

    @property
    def is_cell(self) -> bool:
        """Of a table."""
        return self.kind in ("th_open", "td_open")


def read_markdown(content: bytes) -> FileDocument:
    """An .md file.

    Raises:
        BrokenFileError: It is too large, or is not UTF-8.
    """
    if len(content) > MAX_BYTES:
        raise BrokenFileError(f"the file has more than {MAX_BYTES} bytes; split it")
    encoding = marked_encoding(content) or "utf-8"
    whole = decoded(content, encoding)
    source = LINE_END.sub("\n", whole)
    ends = LINE_END.findall(whole)
    line_end = "\r\n" if "\r\n" in ends else "\n"
    found = FRONT_MATTER.match(source)
    start = found.end() if found else 0
    lines = source[start:].split("\n")
    blocks = _blocks(source[start:], lines)

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str | None] = [*lines]
        for block, translation in reversed(list(zip(blocks, translations, strict=True))):
            if translation != block.text and (text := _written(block, translation)) is not None:
                _put(block, text, written)
        *before, begun = source[:start].split("\n")
        written[0] = begun + (written[0] or "") if begun else written[0]
        return "".join(
            line.replace("\n", line_end) + end
            for line, end in zip([*before, *written], [*ends, ""], strict=True)
            if line is not None
        ).encode(encoding)

    return FileDocument(
        tuple(block.text for block in blocks), Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"})
    )


def _blocks(source: str, lines: Sequence[str]) -> list[_Block]:
    env: dict[str, Any] = {"columns": {}}
    try:
        tokens = parser().parse(source, env)
    except (RecursionError, ValueError, IndexError) as error:
        raise BrokenFileError(f"the file is no Markdown that can be read: {str(error)[:200]}") from None
    blocks: list[_Block] = []
    kind = ""
    for token in tokens:
        if token.type != "inline" or token.map is None:
            kind = ATX if token.markup.startswith(ATX) else token.type
            continue
        in_table = kind in ("th_open", "td_open")
        places = _places(token, lines, env["columns"], in_table=in_table)
        if places is None:
            continue
        children = token.children or []
        block = _Block(places, kind, env)
        block.text = "".join(_with_tags(children, block))
        texts = [child for child in children if child.type in ("text", "text_special")]
        block.words = {word for child in texts for word in child.content.casefold().split()}
        block.spelling = Spelling(pair for child in texts for pair in _characters(child))
        if any(map(str.isalpha, "".join(child.content for child in texts))):
            blocks.append(block)
    return blocks


def _characters(token: Token) -> Iterator[tuple[str, str]]:
    if token.type == "text_special" and len(token.content) == 1:
        yield token.content, token.markup
    else:
        yield from zip(token.content, token.content, strict=True)


def _places(
    token: Token, lines: Sequence[str], columns: dict[int, int], *, in_table: bool
) -> list[tuple[int, int, int]] | None:
    """Where the lines of a run stand in the source; None where they cannot be found."""
    assert token.map is not None
    content = token.content.replace("|", "\\|") if in_table else token.content
    places: list[tuple[int, int, int]] = []
    for number, line in enumerate(content.split("\n"), token.map[0]):
        text = line.strip(" \t")  # The parser has blanks for a tab.
        column = lines[number].find(text, columns.get(number, 0)) if number < len(lines) else -1
        if column < 0:
            return None
        columns[number] = column + len(text)
        places.append((number, column, column + len(text)))
    return places


def _with_tags(children: Sequence[Token], block: _Block) -> Iterator[str]:
    """The run as text with tags."""
    open_marks: list[int] = []
    in_autolink = False
    for child in children:
        raw = re.sub(r"\n[ \t]*", "\n", child.meta.get(RAW, child.content))
        if child.markup == "autolink":
            in_autolink = child.nesting == 1
            if not in_autolink:
                yield f'<x id="{len(block.marks)}"/>'
                block.marks.append((raw, None))
        elif in_autolink:
            continue
        elif child.type in ("text", "text_special"):
            yield escape(child.content, quote=False)
        elif child.type == "softbreak":
            yield raw
        elif child.nesting == 1:
            open_marks.append(len(block.marks))
            yield f'<g id="{len(block.marks)}">'
            block.marks.append((child.markup or "[", child.markup))
        elif child.nesting == -1:
            number = open_marks.pop()
            if child.type == "link_close":
                block.marks[number] = ("[", raw)
                if LABEL in child.meta:
                    block.labels[number] = child.meta[LABEL]
            yield "</g>"
        else:
            yield f'<x id="{len(block.marks)}"/>'
            block.marks.append((raw, None))


def _written(block: _Block, translation: str) -> str | None:
    """A translation of a run as Markdown; None where tags were lost, doubled or invented."""
    try:
        tree = etree.fromstring(f"<p>{translation}</p>", etree.XMLParser(resolve_entities=False))
    except (etree.XMLSyntaxError, ValueError):
        return None
    found = sorted((str(node.tag), node.get("id") or "") for node in tree.iterdescendants())
    wanted = [("x" if behind is None else "g", str(n)) for n, (_, behind) in enumerate(block.marks)]
    if found != sorted(wanted):
        return None
    texts = [text.replace("\r", " ") for text in _texts(tree)]
    ways: list[Way] = [(_same, {}), (block.without_new_marks, {}), (block.without_new_marks, IN_HTML)]
    if sum(text.count("\n") for text in texts) <= block.text.count("\n"):
        for way in ways:
            text, is_right = _attempt(tree, block, texts, way)
            if is_right:
                return text
        source = etree.fromstring(f"<p>{block.text}</p>")
        if not _attempt(source, block, list(_texts(source)), ways[0])[1]:
            # Only what is around it makes it a paragraph.
            return _attempt(tree, block, texts, ways[1])[0]
    texts = [LINE.sub(" ", text) for text in texts]
    for way in (*ways, (_without_marks, {})):
        text, is_right = _attempt(tree, block, texts, way)
        if is_right:
            return text
    return _attempt(tree, block, texts, (_without_marks, IN_HTML))[0]


def _texts(node: etree._Element) -> Iterator[str]:
    yield node.text or ""
    for child in node:
        if child.tag == "g":
            yield from _texts(child)
        yield child.tail or ""


def _same(text: str) -> str:
    return text


def _without_marks(text: str) -> str:
    """The text with a backslash before all that could be a mark."""
    places = {found.start() for found in SPECIAL.finditer(text)}
    places |= {
        found.start()
        for pattern in (CODE, ATTRIBUTES)
        for found in pattern.finditer(text)
        if found[0][0] != "!"
    }
    parts = [text[start:end] for start, end in pairwise([0, *sorted(places), len(text)])]
    return "\\".join(parts) if places else text


def _attempt(
    tree: etree._Element,
    block: _Block,
    texts: Sequence[str],
    way: Way,
) -> tuple[str, bool]:
    """A translation with its marks, and whether a reader finds them and no others."""
    change, forms = way
    marks: list[tuple[str, str | None]] = [
        forms.get(before, (before, behind)) if behind else (before, None) for before, behind in block.marks
    ]
    text = _built(tree, marks, iter(block.spelling.of(texts, change)), block.labels).strip()
    shown: list[tuple[str, str | None]] = [
        (f"\0{before}\0", behind and f"\0{behind}\0") for before, behind in marks
    ]
    shape = _built(tree, shown, iter(texts), {})
    if change is not _same and not block.is_cell:
        known = {found[2] for found in AT_START.finditer(unescape(block.text))}
        text = AT_START.sub(lambda found: found[0] if found[2] in known else rf"{found[1]}\{found[2]}", text)
        text = AT_END.sub(r"\\\g<0>", text)
    is_right = _normal(shape) == _shape(text, block)
    if block.is_cell:
        text = text.replace("|", "\\|")
        text += " " if text.endswith("\\") else ""  # It would escape the bar behind it.
    return text, is_right


def _built(
    node: etree._Element,
    marks: list[tuple[str, str | None]],
    texts: Iterator[str],
    labels: Mapping[int, str],
) -> str:
    """The text of a part of the translation between its marks; those of references get their address's name."""
    parts = [next(texts)]
    for child in node:
        number = int(child.get("id"))
        before, behind = marks[number]
        if behind is None:
            parts.append(before)
        else:
            inner = _built(child, marks, texts, labels)
            label = " ".join(labels.get(number, "").split())
            if label and label.casefold() != " ".join(inner.casefold().split()):
                behind = f"][{label}]"
                marks[number] = before, behind
            # A blank beside another mark would make it text.
            kept = inner if behind.startswith("]") else inner.strip() or inner
            left, _, right = inner.partition(kept) if kept else ("", "", "")
            parts.append(f"{left}{before}{kept}{behind}{right}")
        parts.append(next(texts))
    return "".join(parts)


def _shape(text: str, block: _Block) -> str | None:
    """What a reader finds in a run: its text, and marks between zeros; None where it is no paragraph."""
    env = {"columns": {}, "references": ChainMap({}, block.env.get("references", {}))}
    if block.is_cell:
        inline = parser().parseInline(text, env)
    else:
        tokens = parser().parse(f"# {text}" if block.kind == ATX else text, env)
        inline = [token for token in tokens if token.type == "inline"]
        if len(tokens) != 3 or tokens[0].type not in ("paragraph_open", "heading_open"):
            return None
    return _normal("".join(_seen(token.children or []) for token in inline))


def _seen(children: Sequence[Token]) -> str:
    parts: list[str] = []
    in_autolink = False
    for child in children:
        if child.markup == "autolink":
            in_autolink = child.nesting == 1
        if in_autolink:
            continue
        if child.type in ("text", "text_special", URL):
            parts.append(child.content)
        elif child.type == "softbreak":
            parts.append(" ")
        else:
            mark = "[" if child.type == "link_open" else child.meta.get(RAW) or child.markup or child.content
            parts.append(f"\0{mark}\0")
    return "".join(parts)


def _normal(shape: str) -> str:
    return BLANKS.sub(" ", URL_MARK.sub(r"\1", shape)).strip()


def _put(block: _Block, text: str, lines: list[str | None]) -> None:
    """Write a run in the place of its lines."""
    behind = (lines[block.lines[-1][0]] or "")[block.lines[-1][2] :]
    prefixes = [(lines[number] or "")[:start] for number, start, _ in block.lines]
    written = text.split("\n", len(prefixes) - 1)
    written[-1] = written[-1].replace("\n", f"\n{prefixes[-1]}") + behind
    numbers = [number for number, _, _ in block.lines]
    for number in numbers:
        lines[number] = None
    # With fewer lines, those at the end are left: their line ends are those of the paragraph.
    for number, prefix, line in zip(numbers[-len(written) :], prefixes, written, strict=False):
        lines[number] = prefix + line
