"""Line breaks: in the source of HTML a blank, in a cell or a message the file's own structure."""

import io
import zipfile

import openpyxl
import pytest
from tests.unit.service.files.documents import saved
from tests.unit.service.files.test_packages import PACKAGES

from dragoman_protocols.translation import Format
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import read
from dragoman_service.text.restoring import restore
from dragoman_service.text.segmented_text import Preparation, prepare


def segments(document: FileDocument) -> list[str]:
    """What the model gets."""
    how = Preparation(
        1000,
        format=document.format,
        ignore_tags=document.ignore_tags,
        splitting_tags=document.splitting_tags,
        non_splitting_tags=document.non_splitting_tags,
    )
    return [segment.text for text in document.texts for segment in prepare(text, how).segments]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n      ", " \n", "\t", "\f"])
@pytest.mark.parametrize("form", [Format.HTML, Format.XML])
def test_a_line_break_in_markup_is_a_blank(end: str, form: Format) -> None:
    text = f"<p>The cat{end}sleeps <b>in{end}the</b> house.{end}</p><pre>a{end}b</pre>"
    prepared = prepare(text, Preparation(1000, format=form, ignore_tags=frozenset({"pre"})))
    assert [segment.text for segment in prepared.segments] == ["The cat sleeps <x1>in the</x1> house."]
    assert prepared.rejoin([segment.source for segment in prepared.segments]) == text


def cells(content: bytes) -> list[object]:
    return [cell.value for cell in next(openpyxl.load_workbook(io.BytesIO(content)).active.columns)]


def test_line_breaks_of_cells_are_kept_whatever_the_model_does() -> None:
    book = openpyxl.Workbook()
    book.active.append(["The cat sleeps.\nThe farmer  likes fish.\n\nThe end"])
    document = read("a.xlsx", saved(book), "fr")
    assert segments(document) == ["The cat sleeps.", "The farmer  likes fish.", "The end"]
    back = document.rebuild([document.texts[0].upper().replace("<BR/>", "<br/>")])
    assert cells(back) == ["THE CAT SLEEPS.\nTHE FARMER  LIKES FISH.\n\nTHE END"]
    again = read("a.xlsx", saved(book), "fr")
    assert cells(again.rebuild(["Lost"])) == ["The cat sleeps.\nThe farmer  likes fish.\n\nThe end"]


def test_escapes_of_a_workbook_stay() -> None:
    document = read("cr.xlsx", (PACKAGES / "cr.xlsx").read_bytes(), "fr")
    assert not any("_x000D_" in segment for segment in segments(document))
    assert 'Text with <x id="e0"/><x id="e1"/> code' not in segments(document)
    with zipfile.ZipFile(
        io.BytesIO(document.rebuild([t.replace("sleeps", "dort") for t in document.texts]))
    ) as book:
        written = book.read("xl/sharedStrings.xml").decode()
    assert "The cat dort._x000D_\nThe farmer" in written
    assert "Text with _x005F_x0041_ code" in written


def test_line_breaks_of_messages_are_kept() -> None:
    source = "<source>The cat <g id='1'>sleeps.\n  It</g> is old.</source>"
    unit = f"<file><body><trans-unit id='a'>{source}</trans-unit></body></file>"
    content = f"<xliff xmlns='urn:oasis:names:tc:xliff:document:1.2'>{unit}</xliff>".encode()
    document = read("a.xlf", content, "fr")
    assert segments(document) == ["The cat", "sleeps.", "It", "is old."]
    assert b"sleeps.\n  Elle</g>" in document.rebuild([document.texts[0].replace("It", "Elle")])


@pytest.mark.parametrize(
    ("source", "answer", "back"),
    [
        ("The cat\n sleeps <b>in\nthe</b> house.", "LE CHAT DORT <x1>DANS LA</x1> MAISON.",
         "LE CHAT\n DORT <b>DANS\nLA</b> MAISON."),
        ("One two\nthree four.", "UN DEUX\nTROIS QUATRE.", "UN DEUX\nTROIS QUATRE."),
        ("One two\nthree four.", "EINS.", "EINS."),
        ("One two\nthree\nfour.", "一二三四。", "一二三四。"),
        ("One &amp; two\nthree <br/>four.", "A & B C D E <x1/>F.", "A &amp; B C\nD E <br/>F."),
    ],
)  # fmt: skip
def test_a_line_break_in_markup_stays_behind_the_same_share_of_the_words(
    source: str, answer: str, back: str
) -> None:
    how = Preparation(1000, format=Format.XML, non_splitting_tags=frozenset({"b", "br"}))
    (segment,) = prepare(source, how).segments
    assert restore(segment, answer) == back
