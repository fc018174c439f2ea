"""Workbooks: what belongs together stays equal, and what is read beside cells is translated."""

import io
from typing import Any

import openpyxl
import pytest
from openpyxl.chart import BarChart, Reference
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from tests.unit.service.files.documents import saved
from tests.unit.service.files.test_office import core_translated, shouted
from tests.unit.service.files.test_untranslated_bytes import packed, parts

from dragoman_service.files.kinds import read


def translated(content: bytes, words: dict[str, str] | None = None) -> Any:
    file = read("a.xlsx", content, "fr")

    def by(text: str) -> str:
        return shouted(text) if words is None else words.get(text, text)

    return openpyxl.load_workbook(io.BytesIO(file.rebuild(core_translated(file, by))))


def prices(formula: str = "=1+1") -> Any:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["Item", "Price", "2019"], ["A chair", 3, formula], ["Item", 4, 5]):
        sheet.append(row)
    sheet.add_table(Table(displayName="Prices", ref="A1:C3"))
    return book


def columns(book: Any) -> list[str]:
    return [column.name for column in book.active.tables["Prices"].tableColumns]


def header(book: Any) -> list[object]:
    return [cell.value for cell in book.active[1]]


def test_columns_of_a_table_are_translated_with_their_header_cells() -> None:
    back = translated(saved(prices()))
    assert columns(back) == header(back) == ["ITEM", "PRICE", "2019"]
    assert read("a.xlsx", saved(prices()), "fr").left == ()


def test_columns_to_which_a_formula_refers_stay_and_are_reported() -> None:
    content = saved(prices("=SUM(Prices[Price])"))
    back = translated(content)
    assert columns(back) == header(back) == ["Item", "Price", "2019"]
    assert back.active["A2"].value == "A CHAIR"
    assert read("a.xlsx", content, "fr").left == ("xl/tables/table1.xml",)


@pytest.mark.parametrize("name", ["Preis", "x" * 256])
def test_columns_whose_translations_are_equal_or_too_long_stay(name: str) -> None:
    back = translated(saved(prices()), {"Item": name, "Price": name.upper(), "A chair": "Ein Stuhl"})
    assert columns(back) == header(back) == ["Item", "Price", "2019"]
    assert back.active["A2"].value == "Ein Stuhl"


def test_columns_of_pivot_tables_stay() -> None:
    pivot = '<pivotCacheDefinition xmlns="urn:x"><cacheField name="Item"/></pivotCacheDefinition>'
    content = packed(parts(saved(prices())) | {"xl/pivot.xml": pivot.encode()})
    assert header(translated(content)) == ["Item", "PRICE", "2019"]
    assert set(read("a.xlsx", content, "fr").left) == {"xl/pivot.xml", "xl/tables/table1.xml"}


def test_what_is_read_beside_cells_is_translated() -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Yes", "See here"])
    choices = DataValidation(
        "list", formula1='"Yes,No"', promptTitle="Choose", prompt="Yes or no", error="Wrong"
    )
    choices.add("A1")
    sheet.add_data_validation(choices)
    sheet.oddHeader.left.text, sheet.oddHeader.center.text = "Report", "Page &P of &N"
    back = translated(saved(book)).active
    (after,) = back.data_validations.dataValidation
    assert (after.formula1, after.promptTitle, after.prompt) == ('"YES,NO"', "CHOOSE", "YES OR NO")
    assert after.error == "WRONG"
    assert back["A1"].value == "YES"
    assert (back.oddHeader.left.text, back.oddHeader.center.text) == ("REPORT", "PAGE &P OF &N")


@pytest.mark.parametrize(
    ("word", "after"), [("Oui, bien sûr", '"Yes,No"'), ("Oui", '"Oui,No"'), ('"Oui"', '"Yes,No"')]
)
def test_choices_have_as_many_values_as_before(word: str, after: str) -> None:
    book = openpyxl.Workbook()
    choices = DataValidation("list", formula1='"Yes,No"')
    choices.add("A1")
    book.active.add_data_validation(choices)
    book.active.append(["Text"])
    back = translated(saved(book), {"Yes": word})
    assert back.active.data_validations.dataValidation[0].formula1 == after


def test_a_sheet_too_long_to_be_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    sheet = f"<worksheet><sheetData>{'<row/>' * 500}</sheetData><headerFooter><oddHeader>Top</oddHeader></headerFooter>"
    content = packed(
        {
            "xl/sharedStrings.xml": b"<sst xmlns='urn:x'><si><t>Some text</t></si></sst>",
            "xl/worksheets/sheet1.xml": f"{sheet}</worksheet>".encode(),
        }
    )
    assert read("a.xlsx", content, "fr").texts == ("Some text", "Top")
    monkeypatch.setattr("dragoman_service.files.spreadsheets.MAX_TEXT_BYTES", 3000)
    file = read("a.xlsx", content, "fr")
    assert file.texts == ("Some text",)
    assert file.left == ("xl/worksheets/sheet1.xml",)


def charted() -> bytes:
    book = openpyxl.Workbook()
    for row in (["Region", "Sales"], ["North side", 3], ["South side", 4]):
        book.active.append(row)
    chart = BarChart()
    chart.title = "Yearly sales"
    chart.add_data(Reference(book.active, min_col=2, min_row=1, max_row=3), titles_from_data=True)
    book.active.add_chart(chart, "D1")
    return saved(book)


def test_titles_of_charts_are_translated() -> None:
    assert "Yearly sales" in read("a.xlsx", charted(), "fr").texts


def test_results_of_formulas_are_translated_as_the_cells_to_which_they_refer() -> None:
    cells = "".join(
        f"<c t='str'><f>{formula}</f><v>{value}</v></c>"
        for formula, value in (
            ("A1", "A red chair"),
            ('IF(B1&gt;5,"too much","fine")', "too much"),
            ("B1", "12"),
        )
    )
    content = packed(
        {
            "xl/sharedStrings.xml": b"<sst xmlns='urn:x'><si><t>A red chair</t></si></sst>",
            "xl/worksheets/sheet1.xml": f"<worksheet><sheetData><row>{cells}</row></sheetData></worksheet>".encode(),
        }
    )
    assert read("a.xlsx", content, "fr").texts == ("A red chair", "A red chair")


def test_a_column_whose_header_cell_has_formats_stays() -> None:
    rich = "<sst xmlns='urn:x'><si><r><t>A </t></r><r><rPr><b/></rPr><t>price</t></r></si><si><t>An item</t></si></sst>"
    table = "<table xmlns='urn:x'><tableColumn name='A price'/><tableColumn name='An item'/></table>"
    file = read("a.xlsx", packed({"sst.xml": rich.encode(), "table.xml": table.encode()}), "fr")
    assert file.texts == ("An item", "An item")
    assert file.left == ("table.xml",)
