"""Documents as programs and people write them, each with what an independent reader sees of it."""

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docx
import openpyxl
import openpyxl.comments
import openpyxl.worksheet.table
import polib
import pptx
import pptx.util
import yaml
from markdown_it import MarkdownIt
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from tests.unit.service.files.pdfs import REPORTS
from tests.unit.service.files.real_documents import real_documents, seen_book, seen_content

Seen = Callable[[bytes], Any]


def saved(document: Any) -> bytes:
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def seen_text(content: bytes) -> Any:
    return content.decode("utf-8-sig")


def seen_html(content: bytes) -> Any:
    return re.sub(r">\s+", ">", re.sub(r"<html[^>]*", "<html", content.decode()))


def seen_word(content: bytes) -> Any:
    document = docx.Document(io.BytesIO(content))
    paragraphs = [*document.paragraphs, *(p for t in document.tables for c in t._cells for p in c.paragraphs)]
    return [(p.style.name, "".join(r.text for r in p.runs if r.bold), p.text) for p in paragraphs]


def seen_slides(content: bytes) -> Any:
    slides = pptx.Presentation(io.BytesIO(content)).slides
    return [[shape.text_frame.text for shape in slide.shapes if shape.has_text_frame] for slide in slides]


def seen_workbook(content: bytes) -> Any:
    book = openpyxl.load_workbook(io.BytesIO(content), rich_text=True)
    return [
        (
            sheet.title,
            sheet.merged_cells.ranges and str(sheet.merged_cells),
            sorted(sheet.tables),
            [
                (
                    cell.coordinate,
                    str(cell.value),
                    [bool(each.font.b) for each in cell.value if isinstance(each, TextBlock)]
                    if isinstance(cell.value, CellRichText)
                    else cell.font.b,
                    cell.number_format,
                )
                for row in sheet.iter_rows()
                for cell in row
            ],
        )
        for sheet in book.worksheets
    ]


def seen_csv(content: bytes) -> Any:
    text = content.decode("utf-8-sig")
    return list(
        csv.reader(
            io.StringIO(text, newline=""), delimiter="\t" if "\t" in text else ";" if ";" in text else ","
        )
    )


def seen_catalog(content: bytes) -> Any:
    catalog = polib.pofile(content.decode() + "\n")
    return [
        (
            e.msgctxt,
            e.msgid,
            e.msgid_plural,
            e.msgstr,
            sorted(e.msgstr_plural.items()),
            e.occurrences,
            e.comment,
            e.obsolete,
        )
        for e in catalog
    ]


def seen_xml(content: bytes) -> Any:
    def of(element: ET.Element) -> Any:
        attributes = {name: value for name, value in element.attrib.items() if not name.startswith("state")}
        inner = [of(child) for child in element]
        return element.tag, attributes, (element.text or "").strip(), inner, (element.tail or "").strip()

    return of(ET.fromstring(content))


def seen_markdown(content: bytes) -> Any:
    front, _, body = (
        content.decode().rpartition("\n---\n") if content.startswith(b"---") else ("", "", content.decode())
    )
    return front, MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(body).replace("\n", " ")


def seen_cues(content: bytes) -> Any:
    return [line for line in content.decode().split("\n") if "-->" in line or not line.strip()]


def letter() -> bytes:
    document = docx.Document()
    document.add_heading("Annual report", 1)
    paragraph = document.add_paragraph("The company ")
    paragraph.add_run("grew by 12%").bold = True
    paragraph.add_run(" in the last year.")
    document.add_paragraph("First item", style="List Bullet")
    table = document.add_table(2, 2)
    for row, cells in enumerate((("Name", "Amount"), ("Rent", "1,200"))):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
    return saved(document)


def many_styles() -> bytes:
    document = docx.Document()
    paragraph = document.add_paragraph()
    for number, word in enumerate(
        ("Please", "read", "the", "safety", "instructions", "before", "you", "start.")
    ):
        paragraph.add_run(f"{word} ").italic = number % 2 == 0
    return saved(document)


def slides() -> bytes:
    presentation = pptx.Presentation()
    for title in ("Our plan", "Next steps"):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = f"{title} are simple.\nWe begin tomorrow."
    return saved(presentation)


def workbook(*, rich: bool = False, table: bool = False, sheets: int = 1) -> bytes:
    book = openpyxl.Workbook()
    for number in range(sheets):
        sheet = book.active if not number else book.create_sheet(f"Sheet number {number}")
        assert sheet is not None
        sheet.append(["Item", "Description", "Price", "Total"])
        sheet.append(["A-12", "A red chair & a <table>", 12.5, "=C2*2"])
        sheet.append(["B_7", "Two\nlines of text", 1e6, '=IF(C3>5,"yes","no")'])
        sheet.append([True, "A red chair & a <table>", None, "https://example.org/a"])
        sheet["A1"].font = openpyxl.styles.Font(bold=True)
        sheet["C2"].number_format = "#,##0.00"
        sheet.merge_cells("A6:B6")
        sheet["A6"] = "Merged cells with a note"
        sheet["A6"].comment = openpyxl.comments.Comment("A comment", "Somebody")
        if rich:
            bold = TextBlock(InlineFont(b=True), "very important")
            sheet["A7"] = CellRichText("This is ", bold, " for all of us")
        if table:
            sheet.add_table(openpyxl.worksheet.table.Table(displayName=f"Prices{number}", ref="A1:D4"))
    return saved(book)


def inline_strings() -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive, zipfile.ZipFile(io.BytesIO(workbook())) as source:
        for name in source.namelist():
            part = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                cell = b'<c r="A9" t="inlineStr"><is><t>Written by another program</t></is></c>'
                part = part.replace(b"</sheetData>", b'<row r="9">' + cell + b"</row></sheetData>")
            archive.writestr(name, part)
    return written.getvalue()


def seen_sources(content: bytes) -> Any:
    return [ET.tostring(each) for each in ET.fromstring(content).iter() if each.tag.endswith("}source")]


def seen_written(content: bytes) -> list[tuple[str, str]]:
    """The paragraphs of a Word document with their styles."""
    paragraphs: Any = docx.Document(io.BytesIO(content)).paragraphs
    return [(paragraph.style.name, paragraph.text) for paragraph in paragraphs]


def seen_pdf(expected: Any) -> Seen:
    """Of a PDF the paragraphs that were typeset, of its translation those of the Word document."""

    def seen(content: bytes) -> Any:
        return expected if content.startswith(b"%PDF") else seen_written(content)

    return seen


SEEN: dict[str, Seen] = {
    ".txt": seen_text,
    ".html": seen_html,
    ".htm": seen_html,
    ".docx": seen_word,
    ".pptx": seen_slides,
    ".odt": seen_content,
    ".odp": seen_content,
    ".ods": seen_content,
    ".epub": seen_book,
    ".srt": seen_cues,
    ".vtt": seen_cues,
    ".md": seen_markdown,
    ".json": lambda content: json.loads(content.decode("utf-8-sig")),
    ".arb": lambda content: {**json.loads(content), "@@locale": ""},
    ".yaml": lambda content: list(yaml.safe_load_all(content)),
    ".yml": lambda content: list(yaml.safe_load_all(content)),
    ".po": lambda content: [(*each[:3], each[5:]) for each in seen_catalog(content)],
    ".pot": lambda content: [each[:3] for each in seen_catalog(content)],
    ".xlf": seen_sources,
    ".xliff": seen_sources,
    ".xml": seen_xml,
    ".resx": seen_xml,
    ".strings": lambda content: content.decode("utf-16" if content.startswith(b"\xff\xfe") else "utf-8"),
    ".csv": seen_csv,
    ".tsv": seen_csv,
}

MADE: dict[str, tuple[bytes, Seen]] = {
    "letter.docx": (letter(), seen_word),
    "styles.docx": (many_styles(), seen_word),
    "slides.pptx": (slides(), seen_slides),
    "book.xlsx": (workbook(), seen_workbook),
    "rich.xlsx": (workbook(rich=True), seen_workbook),
    "table.xlsx": (workbook(table=True), seen_workbook),
    "sheets.xlsx": (workbook(sheets=30), seen_workbook),
    "inline.xlsx": (inline_strings(), seen_workbook),
    **{f"{name}.pdf": (content, seen_pdf(expected)) for name, (content, expected) in REPORTS.items()},
}
"""By libraries that write them."""

DATA = Path(__file__).parent / "data"

SAME = {"two.xlf": "same.xliff", "types.yaml": "same.yml"}
"""Other endings of the same kinds."""

FILES = {path.name: path.read_bytes() for path in sorted(DATA.iterdir())} | dict(real_documents())
FILES |= {name: FILES[other] for other, name in SAME.items()}

DOCUMENTS = MADE | {name: (content, SEEN[Path(name).suffix]) for name, content in FILES.items()}
