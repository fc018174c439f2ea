"""XML files of programs: Android's strings.xml, .NET's .resx, and any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.markup_tokens import Kind, tokens
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.inline import Inline
from dragoman_service.files.messages import NON_SPLITTING_TAGS, SPLITTING_TAGS, Message, message_document
from dragoman_service.files.plain import decoded, marked_encoding
from dragoman_service.files.values import in_xml, is_language

ANDROID_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
ANDROID_MEANINGS = {"n": "\n", "t": "\t"}
ANDROID_QUOTED = re.compile(r'\s*"((?:[^"\\]|\\.)*)"\s*', re.DOTALL)
ANDROID_BLANKS = re.compile(r"[ \t\r\n]+")
"""Shown as one blank outside of quotes."""
ANDROID_KEPT_BLANK = re.compile(r"^ | $|(?<= ) ")
"""Shown only if it is escaped."""
ANDROID_RESERVED = re.compile(r"[\\'\"]|^[@?]")
"""Source: https://developer.android.com/guide/topics/resources/string-resource#FormattingAndStyling"""

CDATA = re.compile(r"\s*<!\[CDATA\[.*\]\]>\s*", re.DOTALL)
OPEN_TAG = re.compile(r"""<(?:[^<>"']|"[^"]*"|'[^']*')*>""")

STRING = "System.String"
"""The type of a string in .resx, which most strings do not name."""

OPAQUE = "urn:oasis:names:tc:xliff:document:1.2"
"""Android marks with `xliff:g` what is not translated."""


def serialized_tree(root: etree._Element) -> bytes:
    """A file with all that is around its root, in the encoding that it declares."""
    tree = root.getroottree()
    encoding = tree.docinfo.encoding or "UTF-8"
    return bytes(etree.tostring(tree, xml_declaration=True, encoding=encoding))


def read_xml(content: bytes) -> FileDocument:
    """An .xml file: strings of Android, or else all text of a document.

    Raises:
        BrokenFileError: It is damaged, or has a document type.
    """
    root = parsed(content, keep_cdata=True)
    if root.tag == "resources":
        return _android(content, root)
    if b"<![CDATA[" in content:
        text = etree.tostring(parsed(content).getroottree(), encoding="unicode")
        return FileDocument((text,), Format.XML, lambda translations: _declared(translations[0]))
    encoding = marked_encoding(content) or root.getroottree().docinfo.encoding or "utf-8"

    def rebuild(translations: Sequence[str]) -> bytes:
        _well_formed(translations[0])
        return translations[0].encode(encoding, "xmlcharrefreplace")

    return FileDocument((decoded(content, encoding),), Format.XML, rebuild)


def _declared(text: str) -> bytes:
    return serialized_tree(_well_formed(text))


def _well_formed(text: str) -> etree._Element:
    """The root of a text, whatever encoding it declares."""
    parser = etree.XMLParser(resolve_entities=False, encoding="utf-8")
    try:
        return etree.fromstring(text.encode(), parser)
    except etree.XMLSyntaxError:
        raise BrokenFileError("the translation of the file is not well-formed; send it again") from None


def _android(content: bytes, root: etree._Element) -> FileDocument:
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
        changed: dict[etree._Element, etree._Element] = {}
        for (element, text), translation in zip(found, translations, strict=True):
            filled = etree.Element(element.tag, dict(element.attrib))
            if translation == text.text:
                continue
            if isinstance(text, Message):
                written = in_xml(text.written(translation))
                if written == text.value:
                    continue
                is_cdata = _is_cdata(element) and "]]>" not in written
                filled.text = etree.CDATA(written) if is_cdata else _stored(element)(written)
                changed[element] = filled
            elif text.fill(filled, translation):
                changed[element] = filled
        return _spliced(content, root, changed)

    texts = tuple(text.text for _, text in found)
    return FileDocument(
        texts, Format.XML, rebuild, splitting_tags=SPLITTING_TAGS, non_splitting_tags=NON_SPLITTING_TAGS
    )


def _is_cdata(element: etree._Element) -> bool:
    """Whether the text of an element without others is a CDATA section, which has no escapes."""
    return len(element) == 0 and CDATA.fullmatch(_inner(element)) is not None


def _inner(element: etree._Element) -> str:
    """The source of what is in an element, as it would be written."""
    whole: str = etree.tostring(element, encoding="unicode", with_tail=False)
    start, end = OPEN_TAG.match(whole), whole.rfind("</")
    return whole[start.end() : end] if start and end >= start.end() else ""


def _spliced(content: bytes, root: etree._Element, changed: dict[etree._Element, etree._Element]) -> bytes:
    """The file with the content of some elements, which are not within one another; all else stays as it was."""
    encoding = marked_encoding(content) or root.getroottree().docinfo.encoding or "utf-8"
    source = decoded(content, encoding)
    line_end = "\r\n" if "\r\n" in source else "\n"
    wanted = [changed.get(element) for element in root.iter(etree.Element)]
    written: list[str] = []
    depth = number = 0
    until = -1
    declared = {f' xmlns:{prefix}="{uri}"' for prefix, uri in root.nsmap.items() if prefix}
    for token in tokens(source, html=False):
        if token.kind is Kind.CLOSE:
            depth -= 1
            until = -1 if depth == until else until
        if until < 0:
            written.append(token.raw)
        if token.kind in (Kind.OPEN, Kind.EMPTY):
            new = wanted[number] if number < len(wanted) else None
            number += 1
            if new is not None and token.kind is Kind.OPEN:
                until = depth
                inner = _inner(new).replace("\n", line_end)
                for each in declared:
                    inner = inner.replace(each, "")
                written.append(inner)
            depth += token.kind is Kind.OPEN
    return "".join(written).encode(encoding, "xmlcharrefreplace")


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
    quoted = ANDROID_QUOTED.fullmatch(text)
    return ANDROID_ESCAPE.sub(_meaning, quoted[1] if quoted else ANDROID_BLANKS.sub(" ", text))


def _meaning(found: re.Match[str]) -> str:
    sign = found[1]
    return chr(int(sign[1:], 16)) if len(sign) == 5 else ANDROID_MEANINGS.get(sign, sign)


def _stored(element: etree._Element) -> Callable[[str], str]:
    """How a translation is written: in quotes, which keep its blanks, where the text is; or with escaped blanks."""
    if len(element) == 0 and ANDROID_QUOTED.fullmatch(element.text or ""):
        return lambda text: f'"{_escaped(text)}"'
    if "\\u0020" in "".join(element.itertext()):
        return lambda text: ANDROID_KEPT_BLANK.sub(r"\\u0020", _escaped(text))
    return _escaped


def _escaped(text: str) -> str:
    return ANDROID_RESERVED.sub(r"\\\g<0>", text).replace("\n", "\\n")


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
        changed: dict[etree._Element, etree._Element] = {}
        for (value, message), translation in zip(found, translations, strict=True):
            if translation != message.value:
                filled = changed[value] = etree.Element("value")
                filled.text = in_xml(translation)
        return _spliced(content, root, changed)

    return message_document([message for _, message in found], rebuild)
