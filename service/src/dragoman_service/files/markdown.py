"""Markdown: paragraphs, headings, list items and cells of tables; code, HTML and links' addresses stay.

CommonMark, tables, task lists, alerts and footnotes. A paragraph is written again with its own marks only if it was
translated, in one line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.plain import decoded, marked_encoding

MAX_BYTES = 512 * 1024
"""A book. The parser takes 0.7 s for so much text, and 10 s where all of it is brackets."""

FRONT_MATTER = re.compile(
    r"\ufeff?(?:---[ \t]*\n.*?\n(?:---|\.\.\.)|\+\+\+[ \t]*\n.*?\n\+\+\+)[ \t]*(?:\n|\Z)", re.DOTALL
)
"""YAML, and Hugo's TOML."""

TASK = re.compile(r"\[[ xX]\][ \t]+(?=\S)")
ALERT = re.compile(r"\[![\w|-]+\][+-]?(?:[ \t]+|$)", re.MULTILINE)
"""Obsidian's may be folded, and have a title."""

FOOTNOTE = re.compile(r"\[\^[^\s\[\]]+\]")
FOOTNOTE_TEXT = re.compile(rf"{FOOTNOTE.pattern}:[ \t]*(?=\S)")
"""Source: https://docs.github.com/en/get-started/writing-on-github"""

DEFINITION = re.compile(r":[ \t]{1,3}(?=\S)|\*\[[^\[\]\n]{1,60}\]:[ \t]*(?=\S)")
"""Before the meaning of a term or of an abbreviation, in PHP Markdown Extra."""

DIRECTIVE = re.compile(
    r":{3,}[ \t]*(?:[\w{\[].*)?|(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+\".*\")?[ \t]*|===\+?[ \t]+\".*\"[ \t]*"
    r"|import[ \t]+(?:[\w*{][^\n]*[ \t]from[ \t]+)?(?:'[^'\n]+'|\"[^\"\n]+\");?[ \t]*"
    r"|export[ \t]+(?:const|let|default|function|async)\b.*|\{/\*.*\*/\}[ \t]*"
    r"|\[TOC\]|--8<--[ \t].*|\$\$.*\$\$[ \t]*"
)
"""Begins or ends a block of Docusaurus, VuePress, MyST or Pandoc, or begins one of MkDocs.

Source: https://docusaurus.io/docs/markdown-features/admonitions,
https://squidfunk.github.io/mkdocs-material/reference/admonitions
"""

ATTRIBUTES = re.compile(r"(?<!\{)\{[#.:][^{}\n]*\}(?!\})")
"""`{#id .class}`, and with a colon in kramdown and Python-Markdown."""

CODE = re.compile(
    r"!?\[\[[^\[\]\n]{1,300}\]\]"
    r"|\{\{(?=[^{}\n]{0,500}[*_<\[\\])[^{}\n]{1,500}\}\}|\{%[^%\n]{1,500}%\}|\{/\*[^*\n]{0,500}\*/\}"
    r"|\$\$[^$\n]{1,500}\$\$|\$(?=[^\s$])[^$\n`]{1,300}(?<=\S)\$(?![\w$])"
    r"|\\(?:\((?=(?:[^\n\\]|\\[,;!{}]){0,300}?(?:[\^_=+]|\\[A-Za-z]))(?:[^\n\\]|\\[^\n()]){1,300}?\\\)"
    r"|\[(?=(?:[^\n\\]|\\[,;!{}]){0,300}?(?:[\^_=+]|\\[A-Za-z]))(?:[^\n\\]|\\[^\n\[\]]){1,300}?\\\])"
    r"|\{>>[^<\n]{1,500}<<\}|\{(?:\+\+|--|~~|==)|(?:\+\+|--|~~|==)\}|~>"
    r"|:[a-z][a-z0-9_+\-]{1,40}:"
)
"""Wiki links, shortcodes, comments of MDX, formulas, CriticMarkup and emoji.

Source: https://help.obsidian.md/links, https://gohugo.io/content-management/shortcodes, https://mdxjs.com/docs/what-is-mdx,
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/writing-mathematical-expressions,
https://fletcher.github.io/MultiMarkdown-6/syntax/critic.html
"""
CODE_SIGNS = frozenset("![{$\\+-~=:")

SCHEME = re.compile(r"(?<![A-Za-z])(?:https?|ftp)\Z")
BARE_URL = re.compile(r"://[^\s<>\[\]]{1,2000}(?<![.,;:!?'\")*_~])")
"""A URL's rest, behind its scheme."""

SPECIAL = re.compile(r"[\\`*\[\]<]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|(?<=~)~|&(?=#?\w+;)")
AT_START = re.compile(
    r"^(\s*\d{0,9})((?<=\d)[.)](?=\s|$)|(?<!\d)(?:#{1,6}(?=\s|$)|[>|+=-]|~~~))", re.MULTILINE
)
AT_END = re.compile(r"(?<=\s)#+$")
IN_MARKDOWN: Mapping[str, tuple[str, str]] = {}
IN_HTML = {
    "**": ("<strong>", "</strong>"),
    "__": ("<strong>", "</strong>"),
    "*": ("<em>", "</em>"),
    "_": ("<em>", "</em>"),
    "~~": ("<del>", "</del>"),
}
"""How marks are written, where not as they were."""

HARD_BREAK = "\\\n"


@dataclass
class _Block:
    """A run of text.

    Args:
        lines: For each of its lines: its number, and from and up to which character it stands in it.
        in_table: Whether it is a cell.
        marks: What stands before and behind a marked part, by its number; before alone for what is no text.
    """

    lines: list[tuple[int, int, int]]
    in_table: bool
    text: str = ""
    marks: list[tuple[str, str | None]] = field(default_factory=list)


def read_markdown(content: bytes) -> FileDocument:
    """An .md file.

    Raises:
        BrokenFileError: It is too large, or is not UTF-8.
    """
    if len(content) > MAX_BYTES:
        raise BrokenFileError(f"the file has more than {MAX_BYTES} bytes; split it")
    encoding = marked_encoding(content) or "utf-8"
    whole = decoded(content, encoding)
    line_end = "\r\n" if "\r\n" in whole else "\n"
    source = whole.replace("\r\n", "\n").replace("\r", "\n")
    found = FRONT_MATTER.match(source)
    start = found.end() if found else 0
    lines = source[start:].split("\n")
    blocks = _blocks(source[start:], lines)

    def rebuild(translations: Sequence[str]) -> bytes:
        written: list[str | None] = [*lines]
        for block, translation in reversed(list(zip(blocks, translations, strict=True))):
            if translation != block.text:
                _replace(block, translation, written)
        text = source[:start] + "\n".join(line for line in written if line is not None)
        return text.replace("\n", line_end).encode(encoding)

    return FileDocument(
        tuple(block.text for block in blocks), Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"})
    )


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Addresses stay as they are written.
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005
    # Before what takes a footnote's text for the address of a link.
    parser.block.ruler.before(
        "reference", "marked", _marked, {"alt": ["paragraph", "reference", "blockquote"]}
    )
    parser.block.ruler.before(
        "reference", "directive", _directive, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.inline.ruler.before("link", "kept", _kept)
    parser.inline.ruler.before("escape", "code_of_others", _code_of_others)
    return parser


def _marked(state: StateBlock, number: int, _end: int, silent: bool) -> bool:
    """Let a line begin behind the mark of a task, an alert or a footnote; the rest of it is a block as any other."""
    start, end = state.bMarks[number] + state.tShift[number], state.eMarks[number]
    if state.src[start:end][:1] not in ("[", ":", "*") or state.is_code_block(number):
        return False
    footnote = FOOTNOTE_TEXT.match(state.src, start, end) or DEFINITION.match(state.src, start, end)
    if silent:
        return footnote is not None
    before = state.tokens[-1].type if state.tokens else ""
    alert = ALERT.match(state.src, start) if before == "blockquote_open" else None
    task = TASK.match(state.src, start, end) if before == "list_item_open" else None
    found = alert or task or footnote
    if found is None:
        return False
    state.env["columns"][number] = found.end() - state.src.rfind("\n", 0, start) - 1
    if alert is None:
        state.bMarks[number], state.tShift[number] = found.end(), 0
        return False
    # Its title does not go on in the next line.
    title = state.push("inline", "", 0)
    title.content, title.map, title.children = state.src[found.end() : end].strip(), [number, number + 1], []
    state.line = number + 1
    return True


def _directive(state: StateBlock, number: int, _end: int, silent: bool) -> bool:
    """Keep a line that begins or ends a block; it is no part of the paragraph beside it."""
    start, end = state.bMarks[number] + state.tShift[number], state.eMarks[number]
    if state.is_code_block(number) or DIRECTIVE.fullmatch(state.src, start, end) is None:
        return False
    if not silent:
        state.line = number + 1
    return True


def _kept(state: StateInline, silent: bool) -> bool:
    """Keep the mark of a footnote, and attributes."""
    found = FOOTNOTE.match(state.src, state.pos, state.posMax) or ATTRIBUTES.match(
        state.src, state.pos, state.posMax
    )
    if found is None or silent:  # Asked for the end of a link's text, which must have no other link.
        return False
    state.push("kept", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _code_of_others(state: StateInline, silent: bool) -> bool:
    """Keep what other dialects have for code, and URLs without brackets."""
    sign = state.src[state.pos]
    if sign == ":" and (found := BARE_URL.match(state.src, state.pos, state.posMax)):
        scheme = SCHEME.search(state.pending[-5:])
        if scheme is not None and not silent:
            state.pending = state.pending[: -len(scheme[0])]
            state.push("kept", "", 0).content = scheme[0] + found[0]
            state.pos = found.end()
            return True
    if sign not in CODE_SIGNS or silent:
        return False
    code = CODE.match(state.src, state.pos, state.posMax)
    if code is None:
        return False
    state.push("kept", "", 0).content = code[0]
    state.pos = code.end()
    return True


def _blocks(source: str, lines: Sequence[str]) -> list[_Block]:
    columns: dict[int, int] = {}
    try:
        tokens = _parser().parse(source, {"columns": columns})
    except (RecursionError, ValueError, IndexError) as error:
        raise BrokenFileError(f"the file is no Markdown that can be read: {str(error)[:200]}") from None
    blocks: list[_Block] = []
    in_table = False
    for token in tokens:
        if token.type in ("table_open", "table_close"):
            in_table = token.type == "table_open"
        if token.type != "inline" or token.map is None:
            continue
        places = _places(token, lines, columns, in_table=in_table)
        if places is None:
            continue
        block = _Block(places, in_table)
        block.text = "".join(_written(token.children or [], block))
        if any(
            child.type == "text" and any(map(str.isalpha, child.content)) for child in token.children or []
        ):
            blocks.append(block)
    return blocks


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


def _written(children: Sequence[Token], block: _Block) -> list[str]:
    """The run as text with tags."""
    parts: list[str] = []
    address = ""
    for child in children:
        if child.markup == "autolink":
            if child.nesting == -1:
                parts.append(f'<x id="{len(block.marks)}"/>')
                block.marks.append((f"<{address}>", None))
            address = str(child.attrs.get("href", ""))
        elif address:
            address = child.content
        elif child.type in ("text", "text_special"):
            parts.append(escape(child.content, quote=False))
        elif child.type == "softbreak":
            parts.append(" ")
        elif child.nesting == 1:
            parts.append(f'<g id="{len(block.marks)}">')
            block.marks.append(_around(child))
        elif child.nesting == -1:
            parts.append("</g>")
        else:
            parts.append(f'<x id="{len(block.marks)}"/>')
            block.marks.append((_alone(child), None))
    if block.in_table:
        # The parser has taken their escapes away, those in code too.
        block.marks = [
            (before.replace("|", "\\|"), behind and behind.replace("|", "\\|"))
            for before, behind in block.marks
        ]
    return parts


def _around(token: Token) -> tuple[str, str]:
    if token.type != "link_open":
        return token.markup, token.markup
    return "[", f"]({_address(str(token.attrs.get('href', '')), str(token.attrs.get('title', '')))})"


def _address(url: str, title: str) -> str:
    shown = f"<{url}>" if re.search(r"[\s()<>]", url) or not url else url
    return f'{shown} "{title}"'.replace("\n", " ") if title else shown


def _alone(token: Token) -> str:
    if token.type == "code_inline":
        pad = " " if token.content.startswith("`") or token.content.endswith("`") else ""
        return f"{token.markup}{pad}{token.content}{pad}{token.markup}"
    if token.type == "image":
        address = _address(str(token.attrs.get("src", "")), str(token.attrs.get("title", "")))
        return f"![{token.content}]({address})"
    return HARD_BREAK if token.type == "hardbreak" else token.content


def _replace(block: _Block, translation: str, lines: list[str | None]) -> None:
    try:
        tree = etree.fromstring(f"<p>{translation}</p>", etree.XMLParser(resolve_entities=False))
    except (etree.XMLSyntaxError, ValueError):
        return
    found = sorted((str(node.tag), node.get("id") or "") for node in tree.iterdescendants())
    wanted = [("x" if behind is None else "g", str(n)) for n, (_, behind) in enumerate(block.marks)]
    if found != sorted(wanted):
        return
    text = _built(tree, block, IN_MARKDOWN)
    if _marks_in(text) != sum(behind is not None for _, behind in block.marks):
        text = _built(tree, block, IN_HTML)
    text = text.strip()
    if block.in_table:
        text += " " if text.endswith("\\") else ""  # It would escape the bar behind it.
    else:
        text = AT_END.sub(r"\\\g<0>", AT_START.sub(r"\1\\\2", text))
    number, start, _ = block.lines[0]
    first = lines[number] or ""
    behind = (lines[block.lines[-1][0]] or "")[block.lines[-1][2] :]
    prefix = (lines[block.lines[1][0]] or "")[: block.lines[1][1]] if len(block.lines) > 1 else ""
    lines[number] = first[:start] + text.replace("\n", f"\n{prefix}") + behind
    for other, _, _ in block.lines[1:]:
        lines[other] = None


def _marks_in(text: str) -> int:
    """Marked parts that a reader finds: none between letters, or beside punctuation where no blank follows."""
    inline = _parser().parseInline(text)
    return sum(child.nesting == 1 for token in inline for child in token.children or [])


def _built(node: etree._Element, block: _Block, forms: Mapping[str, tuple[str, str]]) -> str:
    parts = [_escaped(node.text, block)]
    for child in node:
        before, behind = block.marks[int(child.get("id"))]
        if behind is None:
            parts.append(before)
        else:
            before, behind = forms.get(before, (before, behind))
            inner = _built(child, block, forms)
            # A blank beside the mark would make it text.
            left, right = inner[: len(inner) - len(inner.lstrip())], inner[len(inner.rstrip()) :]
            parts.append(f"{left}{before}{inner.strip()}{behind}{right}")
        parts.append(_escaped(child.tail, block))
    return "".join(parts)


def _escaped(text: str | None, block: _Block) -> str:
    plain = re.sub(r"\s*[\n\r]\s*", " ", text or "")
    shown = SPECIAL.sub(r"\\\g<0>", plain)
    return shown.replace("|", "\\|") if block.in_table else shown
