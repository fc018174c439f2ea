"""One segment has one rendering throughout a document, also by a model that never writes the same twice."""

import io
from itertools import count
from typing import Any

import docx
import openpyxl
from tests.support.engines import AnsweringEngine
from tests.unit.service.files.documents import saved

from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.translator import Translator
from dragoman_service.files.kinds import read
from dragoman_service.prompts.families import prompt_family

SENTENCE, OTHER = "The red chair is old.", "It stands in the garden."


def moody() -> AnsweringEngine:
    """Adds another word to each answer."""
    numbers = count()

    def answer(segment: str, _: int) -> str:
        word = "".join(chr(ord("a") + int(digit)) for digit in str(next(numbers)))
        return f"{segment[:-1]} now {word}."

    return AnsweringEngine(answer)


async def translated(name: str, content: bytes) -> bytes:
    file = read(name, content, "en-GB")
    request = TranslationRequest(
        file.texts,
        "en-GB",
        "en",
        format=file.format,
        split=Split.SENTENCES,
        non_splitting_tags=file.non_splitting_tags,
    )
    results = await Translator(moody(), prompt_family("chatml-generic")).translate(request)
    return file.rebuild([result.text for result in results])


async def test_equal_sentences_are_rendered_equally_in_all_paragraphs_cells_and_headers() -> None:
    document = docx.Document()
    document.sections[0].header.paragraphs[0].text = SENTENCE
    for _ in range(40):
        document.add_paragraph(SENTENCE)
        document.add_paragraph(f"{OTHER} {SENTENCE}")
    document.add_table(1, 1).cell(0, 0).text = f"  {SENTENCE}"
    back: Any = docx.Document(io.BytesIO(await translated("a.docx", saved(document))))
    rendered = back.paragraphs[0].text
    other = back.paragraphs[1].text.removesuffix(f" {rendered}")
    assert rendered.startswith("The red chair is old now ")
    assert other.startswith("It stands in the garden now ")
    assert {each.text for each in back.paragraphs} == {rendered, f"{other} {rendered}"}
    assert back.sections[0].header.paragraphs[0].text == rendered
    assert back.tables[0].cell(0, 0).text == f"  {rendered}"


async def test_equal_cells_of_all_sheets_are_rendered_equally() -> None:
    book = openpyxl.Workbook()
    for number in range(5):
        sheet = book.create_sheet(f"S{number}")
        for _ in range(20):
            sheet.append([SENTENCE, number])
    back = openpyxl.load_workbook(io.BytesIO(await translated("a.xlsx", saved(book))))
    texts = {row[0].value for sheet in back.worksheets[1:] for row in sheet.iter_rows()}
    assert len(texts) == 1
    assert str(texts.pop()).startswith("The red chair is old now ")
