"""PDFs become Word documents: what reportlab typeset is read by python-docx."""

import io

import docx
import pytest
from tests.unit.service.files.documents import seen_written
from tests.unit.service.files.pdfs import (
    FONT,
    REPORTS,
    drawn,
    encrypted,
    lines_of,
    one_page_100_000_times,
    page,
    scan,
)

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.kinds import read
from dragoman_service.files.pdf_layout import Block, Line, blocks


def texts(content: bytes) -> tuple[str, ...]:
    return read("a.pdf", content, "de").texts


def lines(
    *texts: str, left: float = 50, top: float = 700, height: float = 12, right: float = 300
) -> list[Line]:
    return [Line(text, left, right, top - n * 1.2 * height, height) for n, text in enumerate(texts)]


@pytest.mark.parametrize("name", REPORTS)
def test_a_document_has_its_paragraphs_in_the_order_of_reading(name: str) -> None:
    content, seen = REPORTS[name]
    file = read("a.pdf", content, "de")
    assert seen_written(file.rebuild(file.texts)) == seen
    shouted = seen_written(file.rebuild([text.upper() for text in file.texts]))
    assert shouted == [(style, text.upper()) for style, text in seen]


def test_hyphens_of_line_breaks_are_removed_and_those_of_words_stay() -> None:
    # Two pages: it does not depend on whether PDFium takes the hyphen for one of a line break.
    assert texts(lines_of("The garden is closed for main-", "tenance in the whole of winter")) == (
        "The garden is closed for maintenance in the whole of winter",
    )
    found = blocks([lines("He went to the Baden-", "Baden station on foot to-", "day at noon")])
    assert [block.text for block in found] == ["He went to the Baden-Baden station on foot today at noon"]


def test_lines_of_scripts_without_spaces_are_joined_without() -> None:
    assert blocks([lines("博物馆十点开", "门")])[0].text == "博物馆十点开门"
    assert blocks([lines("박물관은 열 시에", "문을 연다")])[0].text == "박물관은 열 시에 문을 연다"


def test_running_headers_come_once() -> None:
    def page_of(number: int, text: str) -> list[Line]:
        numbers = [*lines(f"Page {number} of 9", top=40), *lines(f"{number}", top=20)]
        return [*lines("A report", top=800), *lines(text), *numbers]

    found = blocks([page_of(1, "One is here."), page_of(2, "Two is here."), page_of(3, "Three is here.")])
    running = ["A report", "Page 1 of 9"]
    assert [block.text for block in found] == [*running, "One is here.", "Two is here.", "Three is here."]


def test_titles_at_the_same_place_of_each_page_stay() -> None:
    slides = [
        [*lines("Our plan", top=700, height=30), *lines(f"The step is number {n}.", top=500)]
        for n in (5, 5, 5)
    ]
    assert [block.text for block in blocks(slides)].count("Our plan") == 3
    chapters = [
        [*lines(f"Chapter {n}", top=700), *lines("Text.", "More.", "And more.", top=500)] for n in (1, 3, 9)
    ]
    assert [b.text for b in blocks(chapters) if "Chapter" in b.text] == [
        "Chapter 1",
        "Chapter 3",
        "Chapter 9",
    ]


def test_a_paragraph_goes_over_to_the_next_page() -> None:
    found = blocks(
        [lines("This sentence is not yet"), lines("at its end.", right=90), lines("This one is new.")]
    )
    assert found == [
        Block("This sentence is not yet at its end."),
        Block("This one is new.", breaks_page=True),
    ]


@pytest.mark.parametrize(
    ("lang", "runs_left"), [("ar", True), ("he", True), ("de", False), ("zh-Hans", False)]
)
def test_the_new_document_has_language_and_direction_of_the_target(lang: str, runs_left: bool) -> None:
    written = docx.Document(io.BytesIO(read("a.pdf", lines_of("Hello"), lang).rebuild(["x \0<&>"])))
    (paragraph,) = written.paragraphs
    assert paragraph.text == "x <&>"
    assert bool(paragraph._p.xpath("w:pPr/w:bidi")) is runs_left
    assert written.styles.element.xpath("//w:lang/@w:val") == [lang]


def test_what_is_no_text_to_translate_stays() -> None:
    file = read("a.pdf", lines_of("Total", "", "", "12.50"), "de")
    assert file.texts == ("Total",)
    assert [text for _, text in seen_written(file.rebuild(["Summe"]))] == ["Summe", "12.50"]


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (scan(), "it is a scan, or its letters are drawings: run OCR first"),
        (encrypted(), "encrypted; save it without a password"),
        (b"", "no PDF, or is damaged"),
        (b"%PDF-1.7\nabc", "no PDF, or is damaged"),
        (one_page_100_000_times(), "more than 2000 pages"),
    ],
    ids=["a scan", "encrypted", "empty", "cut off", "too many pages"],
)
def test_what_cannot_be_read_is_refused_with_its_cause(content: bytes, cause: str) -> None:
    with pytest.raises(BrokenFileError, match=cause):
        read("a.pdf", content, "de")


def test_a_broken_page_is_blank() -> None:
    broken = page(b"BT /F 12 Tf (Hello").replace(FONT, b"null")
    with pytest.raises(BrokenFileError, match="no text"):
        read("a.pdf", broken, "de")


def test_columns_of_a_table_are_paragraphs_each() -> None:
    table = drawn(
        [(50, 700, 12, "Day"), (200, 700, 12, "Hours"), (50, 680, 12, "Monday"), (200, 680, 12, "closed")]
    )
    assert texts(table) == ("Day", "Hours", "Monday", "closed")


def test_a_superscript_does_not_end_its_line() -> None:
    (text,) = texts(drawn([(50, 700, 12, "The price per m"), (133, 705, 7, "2"), (140, 700, 12, "is high.")]))
    assert text == "The price per m2 is high."
    assert texts(drawn([(50, 700, 12, "We drink H"), (110, 697, 7, "2"), (115, 700, 12, "O.")])) == (
        "We drink H2O.",
    )


@pytest.mark.parametrize(
    ("left", "bottom", "height", "is_whole"),
    [
        (301, 700, 12, True),
        (304, 700, 12, True),
        (301, 705, 7, True),
        (320, 700, 12, False),
        (301, 712, 12, False),
    ],
)
def test_a_line_goes_on_beside_its_end_alone(
    left: float, bottom: float, height: float, is_whole: bool
) -> None:
    found = blocks([[Line("The cat", 50, 300, 700, 12), Line("Sleeps", left, left + 50, bottom, height)]])
    assert (len(found) == 1) is is_whole


def test_a_gap_without_a_space_divides_cells_where_words_have_spaces() -> None:
    apart = drawn([(50, 700, 12, "Cell one of it"), (128, 700, 12, "Cell two of it")])
    assert texts(apart) == ("Cell one of it", "Cell two of it")
