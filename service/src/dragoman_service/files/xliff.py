"""XLIFF 1.2 and 2.0: sources are translated into targets; targets that are translated already stay.

Source: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.0/
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.archives import parsed
from dragoman_service.files.document import FileDocument
from dragoman_service.files.inline import Inline
from dragoman_service.files.line_breaks import SPLITTING_TAGS
from dragoman_service.files.xml_text import serialized_tree

ONE = "urn:oasis:names:tc:xliff:document:1."
TWO = "urn:oasis:names:tc:xliff:document:2."

PAIRS = frozenset({"g", "mrk", "pc"})
"""Inline elements with text of the sentence in them; in others is code of the original format."""

OPEN_STATES = frozenset({"new", "needs-translation", "initial"})


def read_xliff(content: bytes, target_lang: str) -> FileDocument:
    """An .xlf or .xliff file.

    Args:
        content: The file.
        target_lang: BCP-47 tag that the translated file names.

    Raises:
        BrokenFileError: It is none, or is damaged.
    """
    root = parsed(content)
    name = etree.QName(root)
    namespace = name.namespace or ONE
    if name.localname != "xliff" or not namespace.startswith((ONE, TWO)):
        raise BrokenFileError("the file is no XLIFF 1.x or 2.x document")
    first = namespace.startswith(ONE)
    units = [unit for unit in _units(root, first) if any(map(str.isalpha, unit.inline.text))]

    def rebuild(translations: Sequence[str]) -> bytes:
        for unit, translation in zip(units, translations, strict=True):
            if translation != unit.inline.text:
                unit.fill(translation, first)
        if first:
            for file in root.iter("{*}file"):
                file.set("target-language", target_lang)
        else:
            root.set("trgLang", target_lang)
        return serialized_tree(root)

    texts = tuple(unit.inline.text for unit in units)
    return FileDocument(
        texts, Format.XML, rebuild, splitting_tags=SPLITTING_TAGS, non_splitting_tags=frozenset({"g", "x"})
    )


class _Unit:
    """A source to translate: of a `trans-unit` (1.2) or a `segment` (2.0)."""

    def __init__(
        self, element: etree._Element, source: etree._Element, target: etree._Element | None
    ) -> None:
        self._element, self._source, self._target = element, source, target
        self.inline = Inline(source, is_pair)

    def fill(self, translation: str, first: bool) -> None:
        """Write the target."""
        namespace = etree.QName(self._source).namespace
        filled = etree.Element(f"{{{namespace}}}target" if namespace else "target", nsmap=self._source.nsmap)
        if not self.inline.fill(filled, translation):
            return
        space = "{http://www.w3.org/XML/1998/namespace}space"
        if space in self._source.attrib:
            filled.set(space, self._source.get(space))
        if first:
            filled.set("state", "needs-review-translation")
            filled.set("state-qualifier", "mt-suggestion")
        else:
            self._element.set("state", "translated")
            self._element.attrib.pop("subState", None)
        if self._target is None:
            filled.tail = self._source.tail
            self._element.insert(self._element.index(self._source) + 1, filled)
        else:
            filled.tail = self._target.tail
            self._element.replace(self._target, filled)


def is_pair(element: etree._Element) -> bool:
    """Whether the text in an inline element is part of the sentence."""
    is_kept = element.get("translate") == "no" or element.get("mtype") == "protected"
    return etree.QName(element).localname in PAIRS and not is_kept


def _units(root: etree._Element, first: bool) -> Iterator[_Unit]:
    for element in root.iter("{*}trans-unit" if first else "{*}segment"):
        source, target = element.find("{*}source"), element.find("{*}target")
        if first and element.find("{*}seg-source") is not None:
            source = element.find("{*}seg-source")
        if source is None or _is_kept(element):
            continue
        if target is None or not "".join(target.itertext()).strip() or _state(element, target) in OPEN_STATES:
            yield _Unit(element, source, target)


def _state(element: etree._Element, target: etree._Element) -> str | None:
    state: str | None = target.get("state") or element.get("state")
    return state


def _is_kept(element: etree._Element) -> bool:
    """Whether it or the nearest element around it that says so is not to be translated."""
    around: etree._Element | None = element
    while around is not None:
        if "translate" in around.attrib:
            return bool(around.get("translate") == "no")
        around = around.getparent()
    return False
