"""What a paragraph of Word or PowerPoint is made of: text of one format, boxes of it, and what is no text.

Runs are cut at random by spelling marks and revisions; neighbours of equal style are one here.

Source: ECMA-376-1:2016, sections 17.3 (WordprocessingML) and 21.1.2 (DrawingML).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate, groupby

from lxml import etree

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.text.placeholders import Placeholder, placeholders

DROPPED = frozenset({"proofErr", "lastRenderedPageBreak", "rPh", "phoneticPr"})
"""Notes about the text as it was: of the program that wrote the file, and how it is pronounced."""

BOXES = frozenset({"hyperlink", "ins", "moveTo", "smartTag", "customXml", "sdt", "dir", "bdo"})
"""Elements with runs in them, which stay together."""

FIELD_MARKS = frozenset({"fldChar", "instrText"})
TEXT_FIELDS = frozenset({"HYPERLINK", "TOC", "INDEX", "PAGEREF"})
"""Fields whose results are text of the document: links, tables of contents and their lines."""

INVISIBLE = frozenset({"lang", "noProof"})
INVISIBLE_ATTRIBUTES = frozenset({"lang", "altLang", "dirty", "err", "smtClean"})
"""Properties of a run that are not visible."""


MAX_PROPERTIES_BYTES = 16 * 1024
"""Of a run. They have a few hundred bytes as a rule, and some thousands with Word's text effects."""


@dataclass(frozen=True)
class Style:
    """How a run is shown.

    Args:
        visible: Equal for runs that are shown alike.
        properties: The element that says so, None for the paragraph's own style.
        size_bytes: Of that element, and of the run's attributes, which are copied with it.
    """

    visible: bytes = b""
    properties: etree._Element | None = None
    size_bytes: int = 0


@dataclass(frozen=True)
class Text:
    """Text of one style."""

    text: str
    style: Style


@dataclass(frozen=True)
class Kept:
    """An element that comes back as it is.

    Args:
        run: The run in which it stood: it gets one of its own, of the same style.
        style: Of that run.
    """

    element: etree._Element
    run: etree._Element | None = None
    style: Style = Style()

    def placed(self) -> etree._Element:
        """The element to put into the paragraph."""
        if self.run is None:
            return self.element
        alone = etree.Element(self.run.tag, dict(self.run.attrib))
        if self.style.properties is not None:
            alone.append(deepcopy(self.style.properties))
        alone.append(self.element)
        return alone


@dataclass(frozen=True)
class Fixed:
    """What is no text.

    Args:
        kept: Elements that stand side by side.
    """

    kept: tuple[Kept, ...]

    def placed(self) -> list[etree._Element]:
        """The elements to put into the paragraph."""
        return [each.placed() for each in self.kept]


@dataclass(frozen=True)
class Box:
    """An element with pieces in it, such as a link.

    Args:
        inner: The one of its descendants, or itself, that holds the pieces.
    """

    element: etree._Element
    inner: etree._Element
    pieces: tuple[Piece, ...]


Piece = Text | Fixed | Box


def pieces_of(parent: etree._Element) -> list[Piece]:
    """The children of `w:p`, `a:p` or a box, neighbours of one kind together; the element is not changed."""
    return _joined(_whole_placeholders(_joined(_children(parent))))


@dataclass
class _Field:
    """A field that has begun: its instruction, and whether its result follows."""

    instruction: str = ""
    in_result: bool = False

    @property
    def shows_text(self) -> bool:
        return self.in_result and _is_text_field(self.instruction)


def _is_text_field(instruction: str) -> bool:
    return (instruction.split(maxsplit=1) or [""])[0].upper() in TEXT_FIELDS


def _children(parent: etree._Element) -> Iterator[Piece]:
    fields: list[_Field] = []
    for child in parent:
        name = etree.QName(child).localname if isinstance(child.tag, str) else ""
        if name in DROPPED or not name:
            continue
        is_mark = name == "r" and _read_marks(child, fields)
        is_text = all(field.shows_text for field in fields)
        if name == "r" and not is_mark and is_text:
            yield from _run_pieces(child)
        else:
            # What other fields show is computed by the program.
            box = _box(child) if is_text and not is_mark else None
            yield box or Fixed((Kept(child),))


def _read_marks(run: etree._Element, fields: list[_Field]) -> bool:
    """Follow the marks of fields in a run; whether it has some. A field that began in an earlier paragraph is text."""
    marks = [mark for mark in run if isinstance(mark.tag, str) and etree.QName(mark).localname in FIELD_MARKS]
    for mark in marks:
        if etree.QName(mark).localname == "instrText":
            if fields:
                fields[-1].instruction += mark.text or ""
        elif "begin" in mark.attrib.values():
            fields.append(_Field())
        elif fields and "separate" in mark.attrib.values():
            fields[-1].in_result = True
        elif fields and "end" in mark.attrib.values():
            fields.pop()
    return bool(marks)


def _whole_placeholders(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces with each placeholder in one of them: `{{ na|me }}` has the style of its beginning."""
    for are_texts, group in groupby(pieces, lambda piece: isinstance(piece, Text)):
        if not are_texts:
            yield from group
            continue
        texts = [piece for piece in group if isinstance(piece, Text)]
        whole = "".join(each.text for each in texts)
        cuts = _outside(accumulate(len(each.text) for each in texts), list(placeholders(whole)))
        done = 0
        for text, cut in zip(texts, cuts, strict=True):
            if cut > done:
                yield Text(whole[done:cut], text.style)
            done = cut


def _outside(cuts: Iterable[int], found: Sequence[Placeholder]) -> Iterator[int]:
    """Ascending offsets in a text, each within a placeholder moved to its end."""
    at = 0
    for cut in cuts:
        while at < len(found) and found[at].end <= cut:
            at += 1
        yield found[at].end if at < len(found) and found[at].start < cut else cut


def _box(element: etree._Element) -> Box | None:
    name = etree.QName(element).localname
    if name == "fldSimple":
        if not _is_text_field(next((v for k, v in element.attrib.items() if k.endswith("}instr")), "")):
            return None
    elif name not in BOXES:
        return None
    inner = element if name != "sdt" else element.find("{*}sdtContent")
    if inner is None or inner.find("{*}p") is not None:
        return None
    pieces = tuple(pieces_of(inner))
    return Box(element, inner, pieces) if any(texts_of(pieces)) else None


def _run_pieces(run: etree._Element) -> Iterator[Piece]:
    style = _style(run)
    for child in run:
        name = etree.QName(child).localname if isinstance(child.tag, str) else ""
        if name == "t":
            if child.text:
                yield Text(child.text, style)
        elif name == "ruby":
            # The reading of a word says nothing about its translation.
            for base in child.iterfind("{*}rubyBase/{*}r/{*}t"):
                yield Text(base.text or "", style)
        elif name and name != "rPr" and name not in DROPPED:
            yield Fixed((Kept(child, run, style),))


def _style(run: etree._Element) -> Style:
    size_bytes = sum(len(etree.QName(name).localname) + len(value) for name, value in run.attrib.items())
    properties = run.find("{*}rPr")
    if properties is None:
        return Style(size_bytes=size_bytes)
    seen = deepcopy(properties)
    seen.tail = None
    size_bytes += len(etree.tostring(seen))
    if size_bytes > MAX_PROPERTIES_BYTES:
        raise BrokenFileError(
            f"the file has a run of text whose properties take more than {MAX_PROPERTIES_BYTES} bytes"
        )
    for child in list(seen):
        if not isinstance(child.tag, str) or etree.QName(child).localname in INVISIBLE:
            seen.remove(child)
    for name in INVISIBLE_ATTRIBUTES & set(seen.attrib):
        del seen.attrib[name]
    visible = bytes(etree.tostring(seen, method="c14n")) if len(seen) or seen.attrib else b""
    return Style(visible, properties, size_bytes)


def _joined(found: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece."""
    joined: list[Piece] = []
    texts: list[Text] = []
    kept: list[Kept] = []

    def end() -> None:
        if texts:
            joined.append(Text("".join(each.text for each in texts), texts[0].style))
        if kept:
            joined.append(Fixed(tuple(kept)))
        texts.clear()
        kept.clear()

    for piece in found:
        if isinstance(piece, Text):
            if kept or (texts and texts[0].style.visible != piece.style.visible and not piece.text.isspace()):
                end()
            texts.append(piece)
        elif isinstance(piece, Fixed):
            if texts:
                end()
            kept += piece.kept
        else:
            end()
            joined.append(piece)
    end()
    return joined


def texts_of(pieces: Sequence[Piece]) -> Iterator[Text]:
    """The texts among pieces, those in boxes too."""
    for piece in pieces:
        if isinstance(piece, Text):
            yield piece
        elif isinstance(piece, Box):
            yield from texts_of(piece.pieces)


def styles_of(pieces: Iterable[Piece]) -> Iterator[Style]:
    """The style of each run that the pieces become."""
    for piece in pieces:
        match piece:
            case Text():
                yield piece.style
            case Fixed():
                yield from (each.style for each in piece.kept)
            case Box():
                yield from styles_of(piece.pieces)


def words_of(pieces: Sequence[Piece]) -> Iterator[str]:
    """What is read of pieces, with a blank for what is no text."""
    for piece in pieces:
        match piece:
            case Text():
                yield piece.text
            case Fixed():
                yield " "
            case Box():
                yield from words_of(piece.pieces)
