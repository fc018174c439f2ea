"""Documents within documents are translated with them, within bounds."""

import io
from typing import Any

import docx
import openpyxl
import pptx
import pytest
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from tests.unit.service.files.documents import saved, workbook
from tests.unit.service.files.test_office import core_translated
from tests.unit.service.files.test_untranslated_bytes import packed, parts

from dragoman_service.files import embedded
from dragoman_service.files.document import MAX_EMBEDDED_BYTES
from dragoman_service.files.kinds import read
from dragoman_service.files.parsing import INLINE_BYTES, unpacked_bytes

BOX = (Inches(0), Inches(0), Inches(5), Inches(4))


def sales() -> bytes:
    show = pptx.Presentation()
    data = CategoryChartData()
    data.categories = ["North side", "South side"]
    data.add_series("Sales", (1, 2))
    slide = show.slides.add_slide(show.slide_layouts[6])
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *BOX, data)
    return saved(show)


def translated(content: bytes) -> bytes:
    file = read("a.pptx", content, "fr")
    return file.rebuild(core_translated(file, str.upper))


def test_a_chart_and_its_workbook_have_equal_labels() -> None:
    content = sales()
    assert read("a.pptx", content, "fr").left == ()
    back = pptx.Presentation(io.BytesIO(translated(content)))
    chart: Any = next(shape.chart for shape in back.slides[0].shapes if shape.has_chart)
    assert list(chart.plots[0].categories) == ["NORTH SIDE", "SOUTH SIDE"]
    sheet = openpyxl.load_workbook(io.BytesIO(chart.part.chart_workbook.xlsx_part.blob)).active
    assert [row[0].value for row in sheet.rows][1:] == ["NORTH SIDE", "SOUTH SIDE"]
    assert sheet["B1"].value == "SALES"


RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def within(**inner: bytes) -> bytes:
    """A letter with documents in it."""
    letter = parts(saved(docx.Document()))
    relations = "".join(
        f'<Relationship Id="x{n}" Type="{RELATION}/package" Target="in/{name}"/>'
        for n, name in enumerate(inner)
    )
    name = "word/_rels/document.xml.rels"
    letter[name] = letter[name].replace(b"</Relationships>", f"{relations}</Relationships>".encode())
    return packed(letter | {f"word/in/{name}": part for name, part in inner.items()})


def test_what_cannot_be_read_or_is_of_another_kind_is_left() -> None:
    content = within(**{"a.xlsx": workbook(), "b.xlsx": b"no workbook", "c.bin": b"", "d.doc": b"old"})
    file = read("a.docx", content, "fr")
    assert "A comment" in file.texts
    assert file.left == ("word/in/b.xlsx", "word/in/c.bin", "word/in/d.doc")
    assert file.rebuild(file.texts) == content
    after = parts(file.rebuild([text.replace("A comment", "Une note") for text in file.texts]))
    assert [name for name, part in parts(content).items() if part != after[name]] == ["word/in/a.xlsx"]


def test_documents_within_those_are_left() -> None:
    content = within(**{"a.docx": within(**{"b.xlsx": workbook()})})
    assert read("a.docx", content, "fr").left == ("word/in/a.docx/word/in/b.xlsx",)


@pytest.mark.parametrize(("name", "most"), [("MAX_EMBEDDED_BYTES", 10_000), ("MAX_TEXTS", 3)])
def test_more_than_is_read_is_left(name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, name, most)
    assert read("a.docx", within(**{"a.xlsx": workbook()}), "fr").left == ("word/in/a.xlsx",)


def test_a_file_with_documents_in_it_has_a_process() -> None:
    assert INLINE_BYTES < unpacked_bytes("a.docx", packed({"A.XLSX": b"1"})) < INLINE_BYTES + 100
    large = unpacked_bytes("a.docx", packed({"a.xlsx": bytes(1_000_000)}))
    assert large == INLINE_BYTES + MAX_EMBEDDED_BYTES + 1_000_000
