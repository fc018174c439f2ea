"""XML files of programs: Android's strings.xml, .NET's .resx, and any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from html import escape, unescape
from itertools import count

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.markup_tokens import TokenKind, tokens
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.inline import Inline
from dragoman_service.files.messages import NON_SPLITTING_TAGS, SPLITTING_TAGS, Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.spelling import Spelling
from dragoman_service.files.values import in_xml, is_language
from dragoman_service.files.xml_source import Edit, inner_source, spliced

ANDROID_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)|[^\\]", re.DOTALL)
ANDROID_MEANINGS = {"n": "\n", "t": "\t"}
ANDROID_QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*', re.DOTALL)
ANDROID_BLANKS = re.compile(r"[ \t\r\n]+")
"""Shown as one blank outside of quotes."""
ANDROID_KEPT_BLANK = re.compile(r"^ | $|(?<= ) ")
"""Shown only if it is escaped."""
ANDROID_RESERVED = re.compile(r"[\\'\"]")
"""Source: https://developer.android.com/guide/topics/resources/string-resource#FormattingAndStyling"""

CDATA = re.compile(r"\s*<!\[CDATA\[(.*)\]\]>\s*", re.DOTALL)

STRING = "System.String"
"""The type of a string in .resx, which most strings do not name."""

TOOLS = "http://schemas.android.com/tools"
"""Source: https://developer.android.com/studio/write/tool-attributes#toolslocale"""

OPAQUE = "urn:oasis:names:tc:xliff:document:1.2"
"""Android marks with `xliff:g` what is not translated."""


def read_xml(content: bytes, target_lang: str) -> FileDocument:
    """An .xml file: strings of Android, or else all text of a document.

    Args:
        content: The file.
        target_lang: BCP-47 tag, for the attribute `tools:locale` of Android's strings.

    Raises:
        BrokenFileError: It is damaged, or has a document type.
    """
    root = parsed(content, keep_cdata=True)
    if root.tag == "resources":
        return _android(content, root, target_lang)
    encoding = marked_encoding(content) or root.getroottree().docinfo.encoding or "utf-8"
    source = decoded(content, encoding)
    name = next(name for name in (f"cdata{number}" for number in count()) if name not in source)

    def rebuild(translations: Sequence[str]) -> bytes:
        _well_formed(translations[0])
        text = re.sub(f"<{name}>(.*?)</{name}>", _section, translations[0], flags=re.DOTALL)
        return text.encode(encoding, "xmlcharrefreplace")

    return FileDocument((_without_sections(source, name),), Format.XML, rebuild)


def _without_sections(source: str, name: str) -> str:
    """A document with elements of this name in the place of CDATA sections."""
    return "".join(
        f"<{name}>{escape(found[1], quote=False)}</{name}>"
        if token.kind is TokenKind.OTHER and (found := CDATA.fullmatch(token.raw))
        else token.raw
        for token in tokens(source, html=False)
    )


def _section(found: re.Match[str]) -> str:
    return f"<![CDATA[{unescape(found[1]).replace(']]>', ']]]]><![CDATA[>')}]]>"


def _well_formed(text: str) -> None:
    """Refuse a text that is not, whatever encoding it declares."""
    parser = etree.XMLParser(resolve_entities=False, encoding="utf-8")
    try:
        etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        raise BrokenFileError("the translation of the file is not well-formed; send it again") from None


def _android(content: bytes, root: etree._Element, target_lang: str) -> FileDocument:
    locale = next((f"{prefix}:locale" for prefix, uri in root.nsmap.items() if uri == TOOLS), "")
    named = {locale: target_lang} if root.get(f"{{{TOOLS}}}locale") else {}
    found: list[tuple[etree._Element, Inline | Message]] = []
    for element in _android_texts(root):
        if len(element) == 0:
            value = element.text or ""
            text: Inline | Message = Message(value if _is_cdata(element) else _unescaped(value))
        else:
            text = Inline(element, _is_android_pair, _unescaped, _stored(element))
        if any(map(str.isalpha, text.text)):
            found.append((element, text))

    def rebuild(translations: Sequence[str]) -> bytes:
        edits = {root: Edit(attributes=named)}
        for (element, text), translation in zip(found, translations, strict=True):
            filled = etree.Element(element.tag, dict(element.attrib))
            if translation == text.text:
                continue
            if isinstance(text, Message):
                written = in_xml(text.written(translation))
                if written == text.value:
                    continue
                filled.text = written if _is_cdata(element) else _stored(element)(written)
            elif not text.fill(filled, translation):
                continue
            edits[element] = Edit(filled, one_line=not ANDROID_QUOTED.fullmatch(element.text or ""))
        return spliced(content, root, edits)

    texts = tuple(text.text for _, text in found)
    return FileDocument(
        texts, Format.XML, rebuild, splitting_tags=SPLITTING_TAGS, non_splitting_tags=NON_SPLITTING_TAGS
    )


def _is_cdata(element: etree._Element) -> bool:
    """Whether the text of an element without others is a CDATA section, which has no escapes."""
    return len(element) == 0 and CDATA.fullmatch(inner_source(element)) is not None


def _android_texts(root: etree._Element) -> Iterator[etree._Element]:
    for element in root:
        if element.get("translatable") == "false":
            continue
        texts = [element] if element.tag == "string" else list(element.iterchildren("item"))
        if element.tag in ("string", "plurals", "string-array"):
            yield from (each for each in texts if not (each.text or "").startswith(("@", "?")))


def _is_android_pair(element: etree._Element) -> bool:
    return bool(etree.QName(element).namespace != OPAQUE)


def _unescaped(text: str) -> str:
    return "".join(map(_meaning, _signs(text)))


def _signs(text: str) -> Iterator[re.Match[str]]:
    quoted = ANDROID_QUOTED.fullmatch(text)
    return ANDROID_ESCAPE.finditer(quoted[1] if quoted else ANDROID_BLANKS.sub(" ", text))


def _meaning(found: re.Match[str]) -> str:
    sign = found[1]
    if sign is None:
        return found[0]
    return chr(int(sign[1:], 16)) if len(sign) == 5 else ANDROID_MEANINGS.get(sign, sign)


def _stored(element: etree._Element) -> Callable[[str], str]:
    """How a translation is written: in quotes, which keep its blanks, where the text is; or with escaped blanks."""
    signs = [sign for text in element.itertext() for sign in _signs(text)]
    spelling = Spelling((_meaning(sign), sign[0]) for sign in signs if _meaning(sign) != " ")
    # Quotes that are not escaped, though they should be, have another meaning.
    literal = {sign[0] for sign in signs}

    def escaped(text: str) -> str:
        (written,) = spelling.of([text], lambda part: _escaped(part, literal))
        return f"\\{written}" if written.startswith(("@", "?")) else written

    if len(element) == 0 and ANDROID_QUOTED.fullmatch(element.text or ""):
        return lambda text: f'"{escaped(text)}"'
    if any(sign[0] == "\\u0020" for sign in signs):
        return lambda text: ANDROID_KEPT_BLANK.sub(r"\\u0020", escaped(text))
    return escaped


def _escaped(text: str, literal: Container[str]) -> str:
    written = ANDROID_RESERVED.sub(lambda sign: sign[0] if sign[0] in literal else f"\\{sign[0]}", text)
    return written.replace("\n", "\\n")


def read_resx(content: bytes) -> FileDocument:
    """A .resx file: its strings, but not its files, sizes and names of controls.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    root = parsed(content)
    if root.tag != "root":
        raise BrokenFileError("the file is no .resx document: its root is not <root>")
    found = [
        (value, Message(value.text, signs="&"))
        for data in root.iterchildren("data")
        if (data.get("type") or STRING).startswith(STRING)
        and data.get("mimetype") is None
        and not (data.get("name") or "").startswith(">>")
        for value in data.iterchildren("value")
        if not len(value) and value.text and is_language(value.text)
    ]

    def rebuild(translations: Sequence[str]) -> bytes:
        edits: dict[etree._Element, Edit] = {}
        for (value, message), translation in zip(found, translations, strict=True):
            if translation != message.value:
                filled = etree.Element("value")
                filled.text = in_xml(translation)
                edits[value] = Edit(filled)
        return spliced(content, root, edits)

    return message_document([message for _, message in found], rebuild)
