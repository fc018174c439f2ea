"""Changes of some elements within the source of an XML file; all other bytes stay as they are."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape, unescape

from lxml import etree

from dragoman_protocols.markup_tokens import ATTRIBUTE, Token, TokenKind, tokens
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.spelling import Spelling
from dragoman_service.text.line_positions import BLANK, with_line_breaks

OPEN_TAG = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")
SIGN = re.compile(r"&(?:amp|lt|gt|quot|apos|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});|[\s\S]")
CDATA = re.compile(r"(\s*)<!\[CDATA\[(?:(?!\]\]>)[\s\S])*\]\]>(\s*)")
LINE_END = re.compile(r"\r?\n")
TAG_END = re.compile(r"\s*/?>\Z")


@dataclass(frozen=True)
class Edit:
    """What becomes of an element.

    Args:
        content: An element with its new content; None: it stays.
        attributes: Those that get another value; None removes one.
        behind: A new element behind it, with its tags and escapes.
        one_line: Whether line breaks in it are blanks: they stay at the same share of the words.
    """

    content: etree._Element | None = None
    attributes: Mapping[str, str | None] = field(default_factory=dict)
    behind: etree._Element | None = None
    one_line: bool = False


def inner_source(element: etree._Element) -> str:
    """The source of what is in an element, as it would be written."""
    whole: str = etree.tostring(element, encoding="unicode", with_tail=False)
    start, end = OPEN_TAG.match(whole), whole.rfind("</")
    return whole[start.end() : end] if start and end >= start.end() else ""


def spliced(content: bytes, root: etree._Element, edits: Mapping[etree._Element, Edit]) -> bytes:
    """The file with these edits.

    Args:
        content: The file.
        root: Its tree.
        edits: Of elements whose contents are not within one another.
    """
    encoding = marked_encoding(content) or root.getroottree().docinfo.encoding or "utf-8"
    source = decoded(content, encoding)
    line_end = "\r\n" if "\r\n" in source else "\n"
    read = list(tokens(source, html=False))
    wanted = [edits.get(element) for element in root.iter(etree.Element)]
    ends = _ends(read)
    declared = tuple(f' xmlns:{prefix}="{uri}"' for prefix, uri in root.nsmap.items() if prefix)
    written: list[str] = []
    behind: dict[int, str] = {}
    index = 0
    number = -1
    while index < len(read):
        token = read[index]
        number += token.kind in (TokenKind.OPEN, TokenKind.EMPTY)
        edit = (
            wanted[number]
            if token.kind in (TokenKind.OPEN, TokenKind.EMPTY) and number < len(wanted)
            else None
        )
        end = ends.get(index, index)
        if edit is None:
            written.append(token.raw)
        else:
            old = read[index + 1 : end]
            written.append(with_attributes(token.raw, edit.attributes))
            if edit.behind is not None:
                before = read[index - 1] if index else token
                blank = before.raw if before.kind is TokenKind.TEXT and before.raw.isspace() else ""
                name = token.name.rpartition(":")[0]
                new = _element(edit.behind, f"{name}:" if name else "", old, declared)
                behind[end] = blank + LINE_END.sub(line_end, new)
            if edit.content is not None:
                inner = LINE_END.sub(
                    line_end, "".join(_as_before(old, _without(inner_source(edit.content), declared), edit))
                )
                if token.kind is TokenKind.EMPTY:
                    written[-1] = f"{TAG_END.sub('>', written[-1])}{inner}</{token.name}>"
                else:
                    written.append(inner)
                    number += sum(each.kind in (TokenKind.OPEN, TokenKind.EMPTY) for each in old)
                    index = end
                    written.append(read[end].raw)
        written.append(behind.get(index, ""))
        index += 1
    return "".join(written).encode(encoding, "xmlcharrefreplace")


def _ends(read: Sequence[Token]) -> dict[int, int]:
    """For each start tag the index of its end tag."""
    ends: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(read):
        if token.kind is TokenKind.OPEN:
            stack.append(index)
        elif token.kind is TokenKind.CLOSE and stack:
            ends[stack.pop()] = index
    return ends


def _without(source: str, declared: Sequence[str]) -> str:
    for each in declared:
        source = source.replace(each, "")
    return source


def with_attributes(tag: str, attributes: Mapping[str, str | None]) -> str:
    """A start tag with other values of attributes; None removes one."""
    for name, value in attributes.items():
        found = re.search(rf"""\s{re.escape(name)}\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""", tag, re.IGNORECASE)
        if value is None:
            tag = tag if found is None else tag[: found.start()] + tag[found.end() :]
        elif found is None:
            end = TAG_END.search(tag)
            at = end.start() if end else len(tag)
            tag = f'{tag[:at]} {name}="{escape(value)}"{tag[at:]}'
        else:
            quote = found[1][0] if found[1][0] in "\"'" else '"'
            tag = f"{tag[: found.start(1)]}{quote}{escape(value)}{quote}{tag[found.end(1) :]}"
    return tag


def _element(new: etree._Element, prefix: str, old: Sequence[Token], declared: Sequence[str]) -> str:
    name = prefix + etree.QName(new).localname
    attributes = "".join(
        f' {"xml:" if key.startswith("{") else ""}{etree.QName(key).localname}="{escape(value)}"'
        for key, value in new.attrib.items()
    )
    inner = "".join(_as_before(old, _without(inner_source(new), declared), Edit()))
    return f"<{name}{attributes}>{inner}</{name}>"


def _as_before(old: Sequence[Token], new: str, edit: Edit) -> Iterator[str]:
    """New content with the tags and the escapes that the old one has."""
    old_text = [LINE_END.sub("\n", token.raw) for token in old if token.kind is TokenKind.TEXT]
    tags: dict[object, deque[str]] = {}
    for token in old:
        tags.setdefault(_key(token), deque()).append(token.raw)
    spelling = Spelling((unescape(sign[0]), sign[0]) for text in old_text for sign in SIGN.finditer(text))
    read = list(tokens(new, html=False))
    section = CDATA.fullmatch("".join(token.raw for token in old))
    if section is not None and len(read) == 1 and read[0].kind is TokenKind.TEXT:
        text = unescape(read[0].raw).removeprefix(section[1]).removesuffix(section[2])
        if "]]>" not in text:
            yield f"{section[1]}<![CDATA[{text}]]>{section[2]}"
            return
    texts = spelling.of([unescape(token.raw) for token in read if token.kind is TokenKind.TEXT], _escaped)
    if edit.one_line:
        texts = with_line_breaks(texts, [blank for text in old_text for blank in BLANK.findall(text)])
    left = iter(texts)
    for token in read:
        if token.kind is TokenKind.TEXT:
            yield next(left)
        else:
            raws = tags.get(_key(token))
            yield raws.popleft() if raws else token.raw


def _key(token: Token) -> object:
    if token.kind is TokenKind.OTHER:
        return token.raw
    attributes = ATTRIBUTE.finditer(token.attributes)
    return (
        token.kind,
        token.name,
        frozenset((each[1], unescape(each[2] or each[3] or "")) for each in attributes),
    )


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("]]>", "]]&gt;")
