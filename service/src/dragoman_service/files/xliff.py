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
from dragoman_service.files.xml_source import Edit, spliced

ONE = "urn:oasis:names:tc:xliff:document:1."
TWO = "urn:oasis:names:tc:xliff:document:2."

PAIRS = frozenset({"g", "mrk", "pc"})
"""Inline elements with text of the sentence in them; in others is code of the original format."""

TARGET_LANGUAGE = "target-language"
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
        edits = {
            element: Edit(attributes={TARGET_LANGUAGE if first else "trgLang": target_lang})
            for element in (root.iter("{*}file") if first else [root])
        }
        for unit, translation in zip(units, translations, strict=True):
            if translation != unit.inline.text:
                edits |= unit.edits(translation, first)
        return spliced(content, root, edits)

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

    def edits(self, translation: str, first: bool) -> dict[etree._Element, Edit]:
        """The changes that write the target; none where tags were lost, doubled or invented."""
        namespace = etree.QName(self._source).namespace
        filled = etree.Element(f"{{{namespace}}}target" if namespace else "target", nsmap=self._source.nsmap)
        if not self.inline.fill(filled, translation):
            return {}
        space = "{http://www.w3.org/XML/1998/namespace}space"
        if space in self._source.attrib:
            filled.set(space, self._source.get(space))
        state = {"state": "needs-review-translation", "state-qualifier": "mt-suggestion"} if first else {}
        if self._target is None:
            for name, value in state.items():
                filled.set(name, value)
            edits = {self._source: Edit(behind=filled)}
        else:
            edits = {self._target: Edit(filled, attributes=state)}
        if not first:
            edits[self._element] = Edit(attributes={"state": "translated", "subState": None})
        return edits


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
