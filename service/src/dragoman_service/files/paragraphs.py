"""Paragraphs of Word and PowerPoint as texts with tags, and the way back.

The format that most of a paragraph has is plain text, others are `<g id="…">text</g>`, and what is no text
(a break, a picture, a field) is `<x id="…"/>`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from html import escape

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.language import run_properties, set_direction
from dragoman_service.files.line_breaks import ESCAPES, LINE, LineBreaks
from dragoman_service.files.runs import (
    Box,
    Fixed,
    Piece,
    Style,
    Text,
    pieces_of,
    styles_of,
    texts_of,
    words_of,
)
from dragoman_service.files.values import in_xml

MAX_COPIES_BYTES = 16 * 1024 * 1024
"""Of runs' properties in a file: each piece of a run gets a copy of them, which takes twenty times as much memory."""

SPREADSHEET = "/spreadsheetml/"
SPACE = "{http://www.w3.org/XML/1998/namespace}space"


@dataclass
class Paragraph:
    """One paragraph.

    Args:
        element: `w:p` or `a:p`.
        before: What stands before the text and is not shown to the model.
    """

    element: etree._Element
    before: Sequence[Piece]
    pieces: Sequence[Piece]
    after: Sequence[Piece]
    _marked: list[Piece] = field(default_factory=list)
    _breaks: LineBreaks | None = None
    _lang: str = ""

    @property
    def plain(self) -> str:
        """Its words alone."""
        return "".join(words_of(self.pieces))

    @property
    def copies_bytes(self) -> int:
        """What the properties of its runs take at most once it is translated."""
        sizes = [style.size_bytes for style in styles_of((*self.before, *self.pieces, *self.after))]
        # A translation may have text of the common style behind each of them.
        return sum(sizes) + len(sizes) * self._common().size_bytes

    def written(self) -> str:
        """As text with tags; characters that XML reserves are escaped."""
        self._marked = []
        common = self._common()
        written = "".join(self._write(piece, common) for piece in self.pieces)
        if SPREADSHEET not in self.element.tag:
            return written
        self._breaks = LineBreaks(written, ESCAPES)
        return self._breaks.text

    def replace(self, translation: str, lang: str) -> bool:
        """Replace the text by a translation of `written`.

        Args:
            translation: With the tags of `written`.
            lang: BCP-47 tag of the translation.

        Returns:
            False where tags were lost, doubled or invented: nothing is changed then.
        """
        whole = self._breaks.put_back(translation) if self._breaks else translation
        if whole is None:
            return False
        try:
            tree = etree.fromstring(f"<p>{whole}</p>", etree.XMLParser(resolve_entities=False))
        except (etree.XMLSyntaxError, ValueError):
            return False
        if not self._kept(tree):
            return False
        self._put_in_order(tree)
        self._lang = lang
        before = _placed(self.before)
        built = list(self._built(tree, self._common()))
        after = _placed(self.after)
        _fill(self.element, [*before, *built, *after])
        set_direction(self.element, lang)
        return True

    def _common(self) -> Style:
        """The style of most of the text."""
        sizes: Counter[bytes] = Counter()
        first: dict[bytes, Style] = {}
        for text in texts_of(self.pieces):
            sizes[text.style.visible] += len(text.text)
            first.setdefault(text.style.visible, text.style)
        return first[max(sizes, key=lambda visible: sizes[visible])]

    def _write(self, piece: Piece, common: Style) -> str:
        if isinstance(piece, Text) and piece.style.visible == common.visible:
            return escape(piece.text, quote=False)
        number = len(self._marked)
        self._marked.append(piece)
        match piece:
            case Fixed():
                return f'<x id="{number}"/>'
            case Box():
                inner = "".join(self._write(each, common) for each in piece.pieces)
            case Text():
                inner = escape(piece.text, quote=False)
        return f'<g id="{number}">{inner}</g>'

    def _kept(self, tree: etree._Element) -> bool:
        """Whether all tags are there once."""
        found = [(str(node.tag), node.get("id") or "") for node in tree.iterdescendants()]
        wanted = [
            ("x" if isinstance(piece, Fixed) else "g", str(number))
            for number, piece in enumerate(self._marked)
        ]
        return sorted(found) == sorted(wanted)

    def _put_in_order(self, tree: etree._Element) -> None:
        """Put what is no text in its order: a bookmark ends behind its beginning."""
        fixed = [number for number, piece in enumerate(self._marked) if isinstance(piece, Fixed)]
        for node, number in zip(tree.iterdescendants("x"), fixed, strict=True):
            node.set("id", str(number))

    def _built(self, node: etree._Element, style: Style) -> Iterator[etree._Element]:
        """The elements that a part of the translation becomes."""
        if node.text:
            yield self._run(node.text, style)
        for child in node:
            piece = self._marked[int(child.get("id"))]
            match piece:
                case Fixed():
                    yield from piece.placed()
                case Text():
                    yield from self._built(child, piece.style)
                case Box():
                    _fill(piece.inner, list(self._built(child, style)))
                    yield piece.element
            if child.tail:
                yield self._run(child.tail, style)

    def _run(self, text: str, style: Style) -> etree._Element:
        namespace = etree.QName(self.element).namespace
        run = etree.Element(f"{{{namespace}}}r")
        properties = run_properties(namespace, deepcopy(style.properties), self._lang)
        if properties is not None:
            run.append(properties)
        shown = etree.SubElement(run, f"{{{namespace}}}t")
        shown.text = text
        if "drawingml" not in namespace:
            shown.set(SPACE, "preserve")
        return run


class PlainText:
    """Text without formats, such as a comment's or a picture's description.

    Args:
        element: Has the text.
        attribute: The one that has it; None: it is the element's content.
        signs: What is structure in it; None: line breaks, and the escapes of spreadsheets.
    """

    copies_bytes = 0

    def __init__(
        self, element: etree._Element, attribute: str | None = None, signs: re.Pattern[str] | None = None
    ) -> None:
        self._element, self._attribute = element, attribute
        self.plain: str = (element.text if attribute is None else element.get(attribute)) or ""
        signs = signs or (ESCAPES if SPREADSHEET in element.tag else LINE)
        self._breaks = LineBreaks(escape(self.plain, quote=False), signs)

    def written(self) -> str:
        """With tags for line breaks alone; characters that XML reserves are escaped."""
        return self._breaks.text

    def replace(self, translation: str, _lang: str) -> bool:
        """Replace the text by a translation of `written`; False where that is not well-formed, or lost line breaks."""
        whole = self._breaks.put_back(translation)
        if whole is None:
            return False
        try:
            tree = etree.fromstring(f"<p>{whole}</p>", etree.XMLParser(resolve_entities=False))
        except (etree.XMLSyntaxError, ValueError):
            return False
        text = in_xml("".join(tree.itertext()))
        if self._attribute is not None:
            self._element.set(self._attribute, text)
            return True
        self._element.text = text
        if SPREADSHEET in self._element.tag and etree.QName(self._element).localname == "t":
            self._element.set(SPACE, "preserve")
        return True


def paragraphs(root: etree._Element) -> Iterator[Paragraph]:
    """The paragraphs of a part that have words in them, those within text boxes too.

    The part must not be changed before the last one: listing a million empty ones first would take 100 MB.
    """
    for element in root.iter("{*}p"):
        # Checked first, as millions of empty elements are some kilobytes of an archive.
        if not len(element):
            continue
        namespace = etree.QName(element).namespace or ""
        if "wordprocessingml" not in namespace and "drawingml" not in namespace:
            continue
        paragraph = paragraph_of(element)
        if any(map(str.isalpha, paragraph.plain)):
            yield paragraph


def check_copies(found: Iterable[Paragraph | PlainText]) -> None:
    """Refuse paragraphs that take far more memory when they are translated than in the file.

    Raises:
        BrokenFileError: They do.
    """
    if sum(paragraph.copies_bytes for paragraph in found) > MAX_COPIES_BYTES:
        raise BrokenFileError(
            f"the properties of the file's runs of text take more than {MAX_COPIES_BYTES} bytes; split it"
        )


def paragraph_of(element: etree._Element) -> Paragraph:
    """The paragraph that an element with runs is."""
    pieces = pieces_of(element)
    shown = [index for index, piece in enumerate(pieces) if not isinstance(piece, Fixed)]
    first, after = (shown[0], shown[-1] + 1) if shown else (0, 0)
    return Paragraph(element, pieces[:first], pieces[first:after], pieces[after:])


def _placed(pieces: Sequence[Piece]) -> list[etree._Element]:
    return [each for piece in pieces if isinstance(piece, Fixed) for each in piece.placed()]


def _fill(element: etree._Element, content: Sequence[etree._Element]) -> None:
    """Make these the element's only children."""
    for child in list(element):
        element.remove(child)
    element.extend(content)
