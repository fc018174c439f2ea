"""Sentences of office documents with fields, ruby and placeholders in them stay whole."""

import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from tests.unit.service.files.test_packages import PACKAGES

from dragoman_service.files.kinds import read
from dragoman_service.files.paragraphs import paragraph_of


def marked(kind: str) -> str:
    return f"<w:r><w:fldChar w:fldCharType='{kind}'/></w:r>"


def run(text: str, properties: str = "") -> str:
    return f"<w:r><w:rPr>{properties}</w:rPr><w:t xml:space='preserve'>{text}</w:t></w:r>"


def field(instruction: str, result: str) -> str:
    code = f"<w:r><w:instrText> {instruction} </w:instrText></w:r>"
    return marked("begin") + code + marked("separate") + result + marked("end")


def written(content: str) -> str:
    return paragraph_of(parse_xml(f"<w:p {nsdecls('w')}>{content}</w:p>")).written()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (field("HYPERLINK x", run("the guide")), 'Read <x id="0"/>the guide<x id="1"/> now.'),
        (field('TOC \\o "1-3"', run("Title")), 'Read <x id="0"/>Title<x id="1"/> now.'),
        (field("DATE", run("November 3")), 'Read <x id="0"/> now.'),
        (field("toc", run("a") + field("DATE", run("May"))), 'Read <x id="0"/>a<x id="1"/> now.'),
        (f"<w:fldSimple w:instr='HYPERLINK x'>{run('it')}</w:fldSimple>", 'Read <g id="0">it</g> now.'),
        (f"<w:fldSimple w:instr=' DATE '>{run('May')}</w:fldSimple>", 'Read <x id="0"/> now.'),
        (
            f"<w:r><w:ruby><w:rt>{run('reading')}</w:rt><w:rubyBase>{run('base')}</w:rubyBase></w:ruby></w:r>",
            "Read base now.",
        ),
        (run("{{ na") + run("me", "<w:b/>") + run(" }}"), "Read {{ name }} now."),
        (run("%") + run("s", "<w:b/>") + run(" it", "<w:b/>"), 'Read %s<g id="0"> it</g> now.'),
    ],
)
def test_a_sentence_stays_whole(content: str, expected: str) -> None:
    assert written(run("Read ") + content + run(" now.")) == expected


def test_a_field_that_ends_in_another_paragraph_hides_none() -> None:
    assert written(marked("end") + run("The cat sleeps.")) == "The cat sleeps."
    begun = marked("begin") + "<w:r><w:instrText>TOC</w:instrText></w:r>" + marked("separate")
    assert written(begun + run("The cat sleeps.")) == "The cat sleeps."


def test_a_table_of_contents_of_libreoffice_is_translated() -> None:
    texts = read("lo-toc.docx", (PACKAGES / "lo-toc.docx").read_bytes(), "fr").texts
    assert [sum(title in text for text in texts) for title in ("The cat", "The farmer", "The museum")] == [
        2,
        2,
        2,
    ]


def test_odd_paragraphs_are_whole_sentences() -> None:
    texts = read("odds.docx", (PACKAGES / "odds.docx").read_bytes(), "fr").texts
    assert "base word stands here." in texts
    assert "Dear {{ customer_name }}, hello" in texts
