"""Markdown's parser, with what other dialects than CommonMark have, and with the source of each mark.

CommonMark, tables, task lists, alerts and footnotes.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import lru_cache

from markdown_it import MarkdownIt, rules_inline
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

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

LISTING = re.compile(
    r"\{\{[<%]-?\s*(?P<name>highlight|[\w-]{1,40}(?=\s[^{}\n]{0,300}\blang(?:uage)?=))(?:\s[^{}\n]*)?[>%]\}\}[ \t]*"
    r"|\{%-?\s*(?P<tag>highlight|raw|code|codeblock)\b[^{}\n]*%\}[ \t]*"
)
LISTING_END = r"(?:\{{\{{[<%]-?\s*/\s*{0}|\{{%-?\s*end{0})\b"
"""Shortcodes of Hugo and tags of Jekyll around code.

Source: https://gohugo.io/shortcodes/highlight, https://jekyllrb.com/docs/liquid/tags
"""

ATTRIBUTES = re.compile(
    r"(?<!\{)\{[ ]?(?:[#.:][^{}\n]{0,1000}|(?:[\w-]{1,100}=(?:\"[^\"{}\n]{0,300}\"|[^\s\"{}]{1,300})\s?){1,20})\}(?!\})"
)
"""`{#id .class}`, `{key=value}`, and with a colon in kramdown and Python-Markdown."""

OPTION = re.compile(r":[A-Za-z][\w-]{0,60}:(?:[ \t].*)?")
"""Of a directive of MyST, in the lines behind its first."""

CODE = re.compile(
    r"!?\[\[[^\[\]\n]{1,300}\]\](?!\()"
    r"|\]\([^()\s{}]{0,300}\{\{[^{}\n]{1,300}\}\}[^()\n]{0,300}\)"
    r"|\{\{(?=[^{}]{0,500}[*_<\[\\\n])[^{}]{1,500}\}\}|\{%[^%\n]{1,500}%\}|\{/\*[^*\n]{0,500}\*/\}"
    r"|\\begin\{[A-Za-z]{1,20}\*?\}[^$]{1,2000}?\\end\{[A-Za-z]{1,20}\*?\}"
    r"|\$\$[^$]{1,2000}\$\$|\$(?=[^\s$])[^$\n`]{1,300}(?<=\S)\$(?![\w$])"
    r"|\\(?:\((?=(?:[^\n\\]|\\[,;!{}]){0,300}?(?:[\^_=+]|\\[A-Za-z]))(?:[^\n\\]|\\[^\n()]){1,300}?\\\)"
    r"|\[(?=(?:[^\n\\]|\\[,;!{}]){0,300}?(?:[\^_=+]|\\[A-Za-z]))(?:[^\n\\]|\\[^\n\[\]]){1,300}?\\\])"
    r"|\{>>[^<\n]{1,500}<<\}|\{(?:\+\+|--|~~|==)|(?:\+\+|--|~~|==)\}|~>"
    r"|:[a-z][a-z0-9_+\-]{1,40}:"
    r"|%%[^%]{1,500}%%|(?<!\S)\^[A-Za-z0-9][\w\-]{0,60}(?=\s*\Z)"
)
"""Wiki links, shortcodes, comments of MDX and Obsidian, formulas, CriticMarkup, emoji and names of blocks.

Source: https://help.obsidian.md/links, https://gohugo.io/content-management/shortcodes, https://mdxjs.com/docs/what-is-mdx,
https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/writing-mathematical-expressions,
https://fletcher.github.io/MultiMarkdown-6/syntax/critic.html
"""
CODE_SIGNS = frozenset("![]{$\\+-~=:%^")

SCHEME = re.compile(r"(?<![A-Za-z])(?:https?|ftp)\Z")
BARE_URL = re.compile(r"://[^\s<>\[\]]{1,2000}(?<![.,;:!?'\")*_~])")
"""A URL's rest, behind its scheme."""


URL = "url"
KEPT = "kept"
"""Types of tokens: a URL without brackets, and other code."""

RAW = "raw"
"""In the `meta` of a token: its source. Of `link_close` it is what stands behind the link's text."""

LABEL = "label"
"""In the `meta` of a link's end: the source of its text, if that is the reference to its address, too."""


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """The parser; its `env` needs `columns`, an empty dictionary: where in a line its text begins, by its number."""
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    # Addresses stay as they are written.
    made.normalizeLink = lambda url: url  # type: ignore[method-assign]
    made.validateLink = lambda url: True  # type: ignore[method-assign] # noqa: ARG005
    # Before what takes a footnote's text for the address of a link.
    made.block.ruler.before("reference", "marked", _marked, {"alt": ["paragraph", "reference", "blockquote"]})
    made.block.ruler.before(
        "reference", "directive", _directive, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    made.block.ruler.before("reference", "listing", _listing, {"alt": ["paragraph", "blockquote", "list"]})
    for name, rule in LOCATED.items():
        made.inline.ruler.at(name, _located(rule))
    made.inline.ruler.before("link", "kept", _kept)
    made.inline.ruler.before("escape", "code_of_others", _code_of_others)
    return made


InlineRule = Callable[[StateInline, bool], bool]

LOCATED: Mapping[str, InlineRule] = {
    "newline": rules_inline.newline,
    "escape": rules_inline.escape,
    "backticks": rules_inline.backtick,
    "link": rules_inline.link,
    "image": rules_inline.image,
    "autolink": rules_inline.autolink,
    "html_inline": rules_inline.html_inline,
}


def _located(rule: InlineRule) -> InlineRule:
    """A rule whose tokens know their source."""

    def located(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        if not rule(state, silent):
            return False
        if silent or len(state.tokens) == before:
            return True
        token = state.tokens[-1]
        if token.type in ("softbreak", "hardbreak"):
            while state.src[start] != "\\" and start and state.src[start - 1] == " ":
                start -= 1
            token.meta[RAW] = state.src[start : state.pos].rstrip(" \t")
        elif token.type == "link_close" and token.markup != "autolink":
            end = state.md.helpers.parseLinkLabel(state, start, True)
            token.meta[RAW] = state.src[end : state.pos]
            if token.meta[RAW] in ("]", "][]"):
                token.meta[LABEL] = state.src[start + 1 : end]
        else:
            token.meta[RAW] = state.src[start : state.pos]
        return True

    return located


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
    is_option = state.env.get("directive") == number - 1 and OPTION.fullmatch(state.src, start, end)
    if state.is_code_block(number) or not (is_option or DIRECTIVE.fullmatch(state.src, start, end)):
        return False
    if not silent:
        state.line = number + 1
        state.env["directive"] = number
    return True


def _listing(state: StateBlock, number: int, end: int, silent: bool) -> bool:
    """Keep code between the tags of other dialects."""
    found = LISTING.fullmatch(state.src, state.bMarks[number] + state.tShift[number], state.eMarks[number])
    name = found and (found["name"] or found["tag"])
    unclosed = state.env.setdefault("unclosed", set())
    if name is None or name in unclosed:
        return False
    closing = re.compile(LISTING_END.format(re.escape(name))).search(state.src, state.eMarks[number])
    if closing is None:
        unclosed.add(name)
        return False
    if not silent:
        last = bisect_left(state.eMarks, closing.start(), number, end)
        state.line = min(last + 1, end)
    return True


def _kept(state: StateInline, silent: bool) -> bool:
    """Keep the mark of a footnote, and attributes."""
    found = FOOTNOTE.match(state.src, state.pos, state.posMax) or ATTRIBUTES.match(
        state.src, state.pos, state.posMax
    )
    if found is None or silent:  # Asked for the end of a link's text, which must have no other link.
        return False
    state.push(KEPT, "", 0).content = found[0]
    state.pos = found.end()
    return True


def _code_of_others(state: StateInline, silent: bool) -> bool:
    """Keep what other dialects have for code, and URLs without brackets."""
    sign = state.src[state.pos]
    if sign == ":" and (found := BARE_URL.match(state.src, state.pos, state.posMax)):
        scheme = SCHEME.search(state.pending[-5:])
        if scheme is not None and not silent:
            state.pending = state.pending[: -len(scheme[0])]
            state.push(URL, "", 0).content = scheme[0] + found[0]
            state.pos = found.end()
            return True
    if sign not in CODE_SIGNS or silent:
        return False
    code = CODE.match(state.src, state.pos, state.posMax)
    if code is None:
        return False
    state.push(KEPT, "", 0).content = code[0]
    state.pos = code.end()
    return True
