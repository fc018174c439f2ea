"""Longer documents, as offices, publishers and programmers have them, and what independent readers see of them."""

import io
import json
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import docx
import pptx
import pptx.util
from docx.enum.text import WD_BREAK
from ebooklib import epub
from odf import opendocument, table, text

SENTENCES = (
    "The museum opens at ten in the morning.",
    "Visitors who want to see the garden should come early.",
    "The reading room has forty seats and a small workshop.",
    "Nobody knows how old the trees behind the house are.",
    "A guide explains the paintings in three languages.",
    "The ferry leaves from the old harbour every hour.",
    "Please keep your ticket until you leave the building.",
)


def paragraph(number: int) -> str:
    return " ".join(SENTENCES[(number + step) % len(SENTENCES)] for step in range(1 + number % 4))


def saved(document: Any, method: str = "save") -> bytes:
    written = io.BytesIO()
    getattr(document, method)(written)
    return written.getvalue()


def report() -> bytes:
    document = docx.Document()
    document.core_properties.title = "Report"
    document.sections[0].header.paragraphs[0].text = "Annual report of the museum"
    document.sections[0].footer.paragraphs[0].text = "For internal use only"
    for chapter in range(4):
        document.add_heading(f"Chapter with the number {chapter}", 1)
        for number in range(6):
            added = document.add_paragraph(paragraph(number))
            added.add_run(" This is important.").bold = True
            added.add_run(" And so is that.").italic = True
        for style in ("List Bullet", "List Number"):
            document.add_paragraph(SENTENCES[chapter], style=style)
        grid = document.add_table(3, 3, style="Table Grid")
        for row, cells in enumerate(grid.rows):
            for column, cell in enumerate(cells.cells):
                cell.text = f"{row * column}" if row and column else SENTENCES[row + column]
        document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
    return saved(document)


def talk() -> bytes:
    presentation = pptx.Presentation()
    for number in range(6):
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text = f"Plan with the number {number}"
        slide.placeholders[1].text = "\n".join(SENTENCES[number : number + 3])
        slide.notes_slide.notes_text_frame.text = paragraph(number)
        box = slide.shapes.add_textbox(*[pptx.util.Inches(each) for each in (1, 5, 4, 1)])
        box.text_frame.text = SENTENCES[number]
    return saved(presentation)


def essay() -> bytes:
    document = opendocument.OpenDocumentText()
    for number in range(12):
        document.text.addElement(text.H(outlinelevel=1, text=f"Part with the number {number}"))
        added = text.P(text=f"{paragraph(number)} ")
        added.addElement(text.Span(text="This is stressed."))
        document.text.addElement(added)
    return saved(document)


def ledger() -> bytes:
    document = opendocument.OpenDocumentSpreadsheet()
    for name in ("One", "Two", "Three"):
        sheet = table.Table(name=name)
        for number in range(20):
            row = table.TableRow()
            for cell in (paragraph(number), SENTENCES[number % 7]):
                added = table.TableCell(valuetype="string")
                added.addElement(text.P(text=cell))
                row.addElement(added)
            row.addElement(table.TableCell(valuetype="float", value=number, formula=f"of:=[.C{number}]*2"))
            sheet.addElement(row)
        document.spreadsheet.addElement(sheet)
    return saved(document)


def show() -> bytes:
    """An OpenDocument presentation has the text elements of a text document."""
    return essay()


def novel() -> bytes:
    book = epub.EpubBook()
    book.set_identifier("urn:novel")
    book.set_title("A novel")
    chapters = []
    for number in range(5):
        chapter = epub.EpubHtml(uid=f"c{number}", title=f"Chapter {number}", file_name=f"c{number}.xhtml")
        body = "".join(f"<p>{paragraph(each)} <em>So it was.</em></p>" for each in range(8))
        chapter.content = f"<html><body><h1>The chapter {number}</h1>{body}</body></html>"
        book.add_item(chapter)
        chapters.append(chapter)
    book.toc = chapters
    book.spine = chapters
    book.add_item(epub.EpubNcx())
    written = io.BytesIO()
    epub.write_epub(written, book, {"mtime": datetime(2024, 5, 1, tzinfo=UTC)})
    return written.getvalue()


def film() -> bytes:
    return "\n".join(
        f"{n + 1}\n00:{n:02}:01,000 --> 00:{n:02}:04,000\n{SENTENCES[n % 7]}\n" for n in range(40)
    ).encode()


def messages() -> bytes:
    head = 'msgid ""\nmsgstr ""\n"Language: en\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    entries = (
        f'\n#: src/app.c:{n}\nmsgctxt "screen {n}"\nmsgid "{paragraph(n)}"\nmsgstr ""\n' for n in range(40)
    )
    return (head + "".join(entries)).encode()


def site() -> bytes:
    nested = {
        f"page{n}": {"title": SENTENCES[n % 7], "items": [paragraph(n), n, None, True]} for n in range(40)
    }
    return json.dumps(nested, indent=2).encode()


def article() -> bytes:
    rows = "".join(f"<tr><td>{sentence}</td><td>{n}</td></tr>" for n, sentence in enumerate(SENTENCES))
    body = "".join(f"<h2>{SENTENCES[n % 7]}</h2><p>{paragraph(n)} <b>Read this.</b></p>" for n in range(12))
    head = "<!doctype html><html lang='en-GB'><head><title>An article</title></head>"
    return f"{head}<body>{body}<table>{rows}</table></body></html>".encode()


def seen_content(content: bytes) -> Any:
    """All elements and texts of an OpenDocument file, and the names of its parts."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        root = ET.fromstring(archive.read("content.xml"))
        return archive.namelist(), [(each.tag, each.attrib, each.text, each.tail) for each in root.iter()]


def seen_book(content: bytes) -> Any:
    book = epub.read_epub(io.BytesIO(content))
    return book.title, [
        (item.file_name, _elements(item.content)) for item in book.get_items() if item.get_type() == 9
    ]


def _elements(page: bytes) -> list[Any]:
    return [
        (each.tag, (each.text or "").strip(), (each.tail or "").strip())
        for each in ET.fromstring(page).iter()
    ]


def real_documents() -> Iterator[tuple[str, bytes]]:
    yield "report.docx", report()
    yield "talk.pptx", talk()
    yield "essay.odt", essay()
    yield "ledger.ods", ledger()
    yield "show.odp", show()
    yield "novel.epub", novel()
    yield "long-film.srt", film()
    yield "messages.po", messages()
    yield "site.json", site()
    yield "article.htm", article()
