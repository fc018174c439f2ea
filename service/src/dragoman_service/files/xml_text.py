"""XML files of programs: Android's strings.xml, .NET's .resx, and any other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.inline import Inline
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
    root = parsed(content)
    if root.tag == "resources":
        return _android(root)
    text = etree.tostring(root.getroottree(), encoding="unicode")
    return FileDocument((text,), Format.XML, lambda translations: _declared(translations[0]))


def _declared(text: str) -> bytes:
    try:
        return serialized_tree(etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False)))
    except etree.XMLSyntaxError:
        raise BrokenFileError("the translation of the file is not well-formed; send it again") from None


def _android(root: etree._Element) -> FileDocument:
    found = [
        (element, Inline(element, _is_android_pair, _unescaped, _stored(element)))
        for element in _android_texts(root)
    ]
    found = [each for each in found if any(map(str.isalpha, each[1].text))]

    def rebuild(translations: Sequence[str]) -> bytes:
        for (element, inline), translation in zip(found, translations, strict=True):
            filled = etree.Element(element.tag, dict(element.attrib))
            if translation != inline.text and inline.fill(filled, translation):
                filled.tail = element.tail
                element.getparent().replace(element, filled)
        return serialized_tree(root)

    texts = tuple(inline.text for _, inline in found)
    return FileDocument(texts, Format.XML, rebuild, non_splitting_tags=frozenset({"g", "x"}))


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
    values = [
        value
        for data in root.iterchildren("data")
        if data.get("type") is None
        and data.get("mimetype") is None
        and not (data.get("name") or "").startswith(">>")
        for value in data.iterchildren("value")
        if not len(value) and is_language(value.text or "")
    ]

    def rebuild(translations: Sequence[str]) -> bytes:
        for value, translation in zip(values, translations, strict=True):
            value.text = in_xml(translation)
        return serialized_tree(root)

    return FileDocument(tuple(value.text for value in values), Format.PLAIN, rebuild)
