"""The content of an XML element, text with elements in it, as text with tags, and the way back.

Elements with text to translate are `<g id="…">text</g>`, all others `<x id="…"/>`, and line breaks `<br/>`.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from html import escape

from lxml import etree

from dragoman_service.files.line_breaks import LineBreaks
from dragoman_service.files.values import in_xml

Change = Callable[[str], str]


def _same(text: str) -> str:
    return text


class Inline:
    """The content of one element.

    Args:
        element: It is not changed.
        is_pair: Whether the text in an inner element is translated.
        shown: From the file's text to what it means.
        stored: The way back.
    """

    def __init__(
        self,
        element: etree._Element,
        is_pair: Callable[[etree._Element], bool],
        shown: Change = _same,
        stored: Change = _same,
    ) -> None:
        # The tag of a comment or a processing instruction is a function.
        self._is_pair: Callable[[etree._Element], bool] = lambda child: (
            isinstance(child.tag, str) and is_pair(child)
        )
        self._shown, self._stored = shown, stored
        self._inner: list[etree._Element] = []
        self._breaks = LineBreaks(self._written(element))
        self.text = self._breaks.text
        """With tags; the characters that XML reserves are escaped."""

    def fill(self, element: etree._Element, translation: str) -> bool:
        """Put a translation of `text` into an element that is empty.

        Returns:
            False where tags were lost, doubled or invented: the element is left empty then.
        """
        whole = self._breaks.put_back(translation)
        if whole is None:
            return False
        try:
            tree = etree.fromstring(f"<p>{whole}</p>", etree.XMLParser(resolve_entities=False))
        except (etree.XMLSyntaxError, ValueError):
            return False
        found = sorted((str(node.tag), node.get("id") or "") for node in tree.iterdescendants())
        if found != sorted(
            ("g" if self._is_pair(each) else "x", str(n)) for n, each in enumerate(self._inner)
        ):
            return False
        self._build(element, tree)
        return True

    def _written(self, element: etree._Element) -> str:
        parts = [escape(self._shown(element.text or ""), quote=False)]
        for child in element:
            number = len(self._inner)
            self._inner.append(child)
            if self._is_pair(child):
                parts.append(f'<g id="{number}">{self._written(child)}</g>')
            else:
                parts.append(f'<x id="{number}"/>')
            parts.append(escape(self._shown(child.tail or ""), quote=False))
        return "".join(parts)

    def _build(self, element: etree._Element, tree: etree._Element) -> None:
        element.text = self._text(tree.text)
        for node in tree:
            original = self._inner[int(node.get("id"))]
            if node.tag == "x":
                child = deepcopy(original)
            else:
                child = etree.Element(original.tag, dict(original.attrib), nsmap=original.nsmap)
                self._build(child, node)
            child.tail = self._text(node.tail)
            element.append(child)

    def _text(self, text: str | None) -> str | None:
        return text and self._stored(in_xml(text))
