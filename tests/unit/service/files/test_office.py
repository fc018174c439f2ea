"""Documents made and read by others' libraries."""

import io
import struct
import time
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import docx
import pptx
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from dragoman_protocols.errors import BrokenFileError, GenerationError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.html import read_html
from dragoman_service.files.kinds import read
from dragoman_service.text.segmented_text import Preparation, prepare

read_word = partial(read, "a.docx", target_lang="fr")
read_powerpoint = partial(read, "a.pptx", target_lang="fr")
read_excel = partial(read, "a.xlsx", target_lang="fr")
read_opendocument = partial(read, "a.odt", target_lang="fr")
read_book = partial(read, "a.epub", target_lang="fr")


def saved(document: Any) -> bytes:
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def opened(content: bytes) -> Any:
    return docx.Document(io.BytesIO(content))


def styles(paragraph: Any) -> list[tuple[str, bool]]:
    """A paragraph's text with what is bold, runs of one style as one."""
    found: list[tuple[str, bool]] = []
    for run in paragraph.runs:
        if found and found[-1][1] == bool(run.bold):
            found[-1] = (found[-1][0] + run.text, bool(run.bold))
        else:
            found.append((run.text, bool(run.bold)))
    return found


def shouted(text: str) -> str:
    """A translation that keeps tags and entities."""
    parts = etree.fromstring(f"<p>{text}</p>")
    for node in parts.iter():
        node.text = node.text and node.text.upper()
        node.tail = node.tail and node.tail.upper()
    return str(etree.tostring(parts, encoding="unicode"))[len("<p>") : -len("</p>")]


def translate(read: Callable[[bytes], Any], content: bytes, by: Callable[[str], str] = shouted) -> bytes:
    document = read(content)
    return bytes(document.rebuild([by(text) for text in document.texts]))


def letter() -> Any:
    document = docx.Document()
    document.add_heading("A title", 1)
    paragraph = document.add_paragraph("The cat ")
    paragraph.add_run("sleeps").bold = True
    paragraph.add_run(" in ")
    paragraph.add_run("the house & <garden>.")
    document.add_paragraph("")
    document.add_paragraph("12.5")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Hello", "3"
    document.sections[0].header.paragraphs[0].text = "Header"
    document.add_picture(io.BytesIO(PIXEL))
    return document


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PIXEL = (
    b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    + chunk(b"IDAT", zlib.compress(b"\0\0"))
    + chunk(b"IEND", b"")
)


def test_word_is_texts_with_tags_for_other_styles() -> None:
    assert read_word(saved(letter())).texts == (
        "A title",
        'The cat <g id="0">sleeps</g> in the house &amp; &lt;garden&gt;.',
        "Hello",
        "Header",
    )


def test_word_keeps_its_formats_tables_headers_and_pictures() -> None:
    back = opened(translate(read_word, saved(letter())))
    assert styles(back.paragraphs[1]) == [
        ("THE CAT ", False),
        ("SLEEPS", True),
        (" IN THE HOUSE & <GARDEN>.", False),
    ]
    assert back.paragraphs[0].style.name == "Heading 1"
    assert back.paragraphs[0].text == "A TITLE"
    assert [cell.text for cell in back.tables[0].rows[0].cells] == ["HELLO", "3"]
    assert back.sections[0].header.paragraphs[0].text == "HEADER"
    assert len(back.inline_shapes) == 1


def test_formats_move_with_their_words() -> None:
    turned = translate(
        read_word,
        saved(letter()),
        lambda text: text.replace('The cat <g id="0">sleeps</g>', '<g id="0">Schläft</g> die Katze'),
    )
    assert styles(opened(turned).paragraphs[1])[:2] == [
        ("Schläft", True),
        (" die Katze in the house & <garden>.", False),
    ]


def test_breaks_and_bookmarks_keep_their_order_whatever_the_model_did() -> None:
    document = docx.Document()
    run = document.add_paragraph().add_run("One")
    run.add_tab()
    run.add_text("two")
    run.add_break()
    run.add_text("three")
    swapped = 'Drei <x id="1"/> zwei <x id="0"/> eins'
    content = translate(read_word, saved(document), lambda text: swapped if "<x" in text else text)
    assert opened(content).paragraphs[0].text == "Drei \t zwei \n eins"


@pytest.mark.parametrize(
    "answer",
    [
        "The cat sleeps.",
        '<g id="0">a',
        '<g id="0">a</g><g id="0">b</g>',
        '<g id="1">a</g>',
        '<h id="0">a</h>',
        "a & b",
        '<g id="0">&nbsp;</g>',
        "\x00",
        "<g>a</g>",
    ],
)
def test_a_paragraph_whose_tags_were_lost_stays_as_it_was(answer: str) -> None:
    content = saved(letter())
    back = opened(translate(read_word, content, lambda text: answer if "<g" in text else text))
    assert styles(back.paragraphs[1]) == styles(opened(content).paragraphs[1])


def with_inner(*pieces: str) -> bytes:
    """A document of one paragraph of raw XML."""
    document = docx.Document()
    document.element.body.insert(0, parse_xml(f"<w:p {nsdecls('w')}>{''.join(pieces)}</w:p>"))
    return saved(document)


def run(text: str) -> str:
    return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'


def heavy_run(prefix: str, pieces: int, properties: int) -> str:
    """A run of as many texts with a break behind each, and with as many properties."""
    of_run = f"<{prefix}:rPr>{f'<{prefix}:b/>' * properties}</{prefix}:rPr>" if properties else ""
    texts = f"<{prefix}:t>a b</{prefix}:t><{prefix}:br/>" * pieces
    return f"<{prefix}:r>{of_run}{texts}</{prefix}:r>"


def heavy_slide(pieces: int, properties: int) -> bytes:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[0])
    paragraph = slide.shapes.title.text_frame.paragraphs[0]._p
    paragraph.append(
        parse_xml(heavy_run("a", pieces, properties).replace("<a:r>", f"<a:r {nsdecls('a')}>", 1))
    )
    return saved(show)


def heavy_sheet(pieces: int, properties: int) -> bytes:
    run = heavy_run("x", pieces, properties)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("xl/workbook.xml", "<a/>")
        archive.writestr("xl/sharedStrings.xml", f"<x:sst xmlns:x='urn:x'><x:si>{run}</x:si></x:sst>")
    return written.getvalue()


HEAVY: dict[str, tuple[Callable[[bytes], FileDocument], Callable[[int, int], bytes]]] = {
    "word": (read_word, lambda *size: with_inner(heavy_run("w", *size))),
    "powerpoint": (read_powerpoint, heavy_slide),
    "excel": (read_excel, heavy_sheet),
}


@pytest.mark.parametrize("kind", HEAVY)
def test_a_file_whose_copied_properties_would_fill_the_memory_is_refused(kind: str) -> None:
    read, made = HEAVY[kind]
    with pytest.raises(BrokenFileError, match="properties of the file's runs"):
        read(made(1500, 2000))
    assert read(made(100, 100)).texts == ("a b" + "".join(f'<x id="{n}"/>a b' for n in range(99)),)


def test_attributes_of_runs_are_copied_too() -> None:
    run = heavy_run("w", 200, 0).replace("<w:r>", f"<w:r w:rsidR='{'0' * 100_000}'>", 1)
    with pytest.raises(BrokenFileError, match="properties of the file's runs"):
        read_word(with_inner(run))


def test_a_long_namespace_prefix_is_refused_which_each_new_run_would_have() -> None:
    names = f"{nsdecls('w')} xmlns:{'p' * 20_000}='urn:x'"
    parts = {"word/document.xml": f"<w:document {names}><w:p>{run('a')}</w:p></w:document>"}
    with pytest.raises(BrokenFileError, match="namespace prefix"):
        read_word(book(**parts))


@pytest.mark.slow
def test_a_run_of_many_pieces_is_written_in_linear_time() -> None:
    content = with_inner(heavy_run("w", 15_000, 0))
    began_s = time.thread_time()
    assert translate(read_word, content, lambda text: text.replace("a b", "c d")) != content
    assert time.thread_time() - began_s < 4.0


def test_links_fields_and_breaks_are_kept_in_place() -> None:
    content = with_inner(
        '<w:bookmarkStart w:id="0" w:name="here"/>',
        run("See "),
        f'<w:hyperlink w:anchor="here">{run("the page")}</w:hyperlink>',
        run(" now"),
        "<w:r><w:br/><w:t>on page </w:t></w:r>",
        '<w:r><w:fldChar w:fldCharType="begin"/></w:r>',
        "<w:r><w:instrText>PAGE</w:instrText></w:r>",
        '<w:r><w:fldChar w:fldCharType="separate"/></w:r>',
        run("three"),
        '<w:r><w:fldChar w:fldCharType="end"/></w:r>',
        run(" of the book"),
        '<w:bookmarkEnd w:id="0"/>',
    )
    assert read_word(content).texts == (
        'See <g id="0">the page</g> now<x id="1"/>on page <x id="2"/> of the book',
    )
    back = opened(translate(read_word, content)).paragraphs[0]._p
    words = "".join(node.text for node in back.iter(qn("w:t")))
    assert words == "SEE THE PAGE NOWON PAGE three OF THE BOOK"
    assert [child.tag.partition("}")[2] for child in back] == [
        "bookmarkStart", "r", "hyperlink", "r", "r", "r", "r", "r", "r", "r", "r", "r", "bookmarkEnd",
    ]  # fmt: skip
    assert back.find(qn("w:hyperlink")).get(qn("w:anchor")) == "here"


def test_spelling_marks_and_revision_ids_do_not_cut_a_sentence() -> None:
    content = with_inner(
        '<w:r w:rsidR="001"><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t xml:space="preserve">The c</w:t></w:r>',
        '<w:proofErr w:type="spellStart"/>',
        '<w:r w:rsidR="002"><w:rPr><w:noProof/></w:rPr><w:t>at</w:t></w:r>',
        '<w:proofErr w:type="spellEnd"/>',
        run(" sleeps."),
    )
    assert read_word(content).texts == ("The cat sleeps.",)


def test_deleted_text_stays_deleted_and_inserted_text_is_translated() -> None:
    content = with_inner(
        run("a "),
        '<w:del w:id="1" w:author="x"><w:r><w:delText>gone</w:delText></w:r></w:del>',
        f'<w:ins w:id="2" w:author="x">{run("here")}</w:ins>',
    )
    assert read_word(content).texts == ('a <x id="0"/><g id="1">here</g>',)
    back = opened(translate(read_word, content)).paragraphs[0]._p
    assert [node.text for node in back.iter(qn("w:delText"))] == ["gone"]
    assert [node.text for node in back.find(qn("w:ins")).iter(qn("w:t"))] == ["HERE"]


def test_a_text_box_within_a_paragraph_is_a_paragraph_of_its_own() -> None:
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('inside')}</w:p></w:txbxContent></w:pict></w:r>"
    content = with_inner(run("before "), box, run(" after"))
    assert read_word(content).texts == ('before <x id="0"/> after', "inside")
    back = opened(translate(read_word, content)).paragraphs[0]._p
    assert "".join(node.text for node in back.iter(qn("w:t"))) == "BEFORE INSIDE AFTER"


def test_the_core_sees_a_paragraph_as_one_segment() -> None:
    document = read_word(saved(letter()))
    how = Preparation(1000, format=document.format, non_splitting_tags=document.non_splitting_tags)
    assert [len(prepare(text, how).segments) for text in document.texts] == [1] * 4


RUNS = st.lists(
    st.tuples(
        st.text(alphabet="ab <&\t\n", max_size=6),
        st.booleans(),
        st.sampled_from(["", "br", "tab", "noBreakHyphen"]),
    ),
    max_size=8,
)


@pytest.mark.slow
@given(RUNS)
def test_untranslated_every_paragraph_has_the_same_text_and_style(runs: list[tuple[str, bool, str]]) -> None:
    document = docx.Document()
    paragraph = document.add_paragraph()
    for text, bold, other in runs:
        made = paragraph.add_run(text)
        made.bold = bold or None
        if other:
            made._r.append(OxmlElement(f"w:{other}"))
    content = saved(document)
    back = opened(translate(read_word, content, lambda text: shouted(text).lower().replace("<X", "<x")))
    assert back.paragraphs[0].text == paragraph.text
    assert bold_letters(back.paragraphs[0]) == bold_letters(paragraph)


def bold_letters(paragraph: Any) -> list[tuple[str, bool]]:
    return [(char, bool(run.bold)) for run in paragraph.runs for char in run.text if char.isalpha()]


def test_powerpoint() -> None:
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "A title"
    frame = slide.placeholders[1].text_frame
    frame.text = "The cat "
    frame.paragraphs[0].add_run().text = "sleeps"
    frame.paragraphs[0].runs[1].font.bold = True
    slide.notes_slide.notes_text_frame.text = "A note"
    content = saved(show)
    assert set(read_powerpoint(content).texts) == {"A title", 'The cat <g id="0">sleeps</g>', "A note"}
    back = pptx.Presentation(io.BytesIO(translate(read_powerpoint, content))).slides[0]
    assert back.shapes.title.text == "A TITLE"
    assert [
        (run.text, bool(run.font.bold)) for run in back.placeholders[1].text_frame.paragraphs[0].runs
    ] == [
        ("THE CAT ", False),
        ("SLEEPS", True),
    ]
    assert back.notes_slide.notes_text_frame.text == "A NOTE"


def core_translated(document: Any, by: Callable[[str], str]) -> list[str]:
    """Texts with every segment's words replaced, as the core does it."""
    how = Preparation(
        10_000,
        format=document.format,
        ignore_tags=document.ignore_tags,
        splitting_tags=document.splitting_tags,
        non_splitting_tags=document.non_splitting_tags,
    )
    prepared = [prepare(text, how) for text in document.texts]
    return [each.rejoin([by(segment.source) for segment in each.segments]) for each in prepared]


def odt() -> bytes:
    text = pytest.importorskip("odf.text")
    opendocument = pytest.importorskip("odf.opendocument")
    document = opendocument.OpenDocumentText()
    document.text.addElement(text.H(outlinelevel=1, text="A title"))
    paragraph = text.P(text="The cat ")
    paragraph.addElement(text.Span(text="sleeps"))
    paragraph.addText(" & dreams.")
    document.text.addElement(paragraph)
    written = io.BytesIO()
    document.write(written)
    return written.getvalue()


def test_opendocument() -> None:
    content = odt()
    document = read_opendocument(content)
    assert document.rebuild(document.texts)
    seen: list[str] = []

    def by(source: str) -> str:
        seen.append(source)
        return source.replace("sleeps", "SLEEPS").replace("A title", "A TITLE")

    back = document.rebuild(core_translated(document, by))
    assert "A title" in seen
    assert any(source.startswith("The cat <text:span") for source in seen)
    with zipfile.ZipFile(io.BytesIO(back)) as archive:
        assert archive.infolist()[0].filename == "mimetype"
        assert archive.infolist()[0].compress_type == zipfile.ZIP_STORED
        words = "".join(etree.fromstring(archive.read("content.xml")).itertext())
    assert "A TITLE" in words
    assert "The cat SLEEPS & dreams." in words
    opened_again = pytest.importorskip("odf.opendocument").load(io.BytesIO(back))
    assert opened_again.mimetype == "application/vnd.oasis.opendocument.text"


CHAPTER = """<?xml version="1.0"?>
<html xmlns="http://www.w3.org/1999/xhtml"><body><p>Hello <br/><b>you</b></p></body></html>"""


def book(**parts: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", "<container/>")
        for name, part in parts.items():
            archive.writestr(name, part)
    return written.getvalue()


def test_a_book_s_chapters_are_html() -> None:
    document = read_book(book(**{"OPS/one.xhtml": CHAPTER, "OPS/style.css": "p {}"}))
    assert document.texts == (CHAPTER,)
    back = document.rebuild(core_translated(document, lambda source: source.replace("Hello", "Hallo")))
    with zipfile.ZipFile(io.BytesIO(back)) as archive:
        assert archive.namelist()[0] == "mimetype"
        expected = CHAPTER.replace("Hello", "Hallo").replace("><body", ' xml:lang="fr"><body')
        assert archive.read("OPS/one.xhtml").decode() == expected


@pytest.mark.parametrize(
    "closed",
    [
        '<script src="a.js"/>',
        "<style/>",
        "<textarea rows='2' />",
        '<iframe src="x.xhtml" />',
        "<svg/>",
        "<title/>",
        "<!-- <script/> -->",
        "<script><![CDATA[ a('<style/>') ]]></script>",
    ],
)
def test_what_follows_an_element_that_ends_itself_is_translated(closed: str) -> None:
    chapter = CHAPTER.replace("<p>", f"{closed}<p>")
    document = read_book(book(**{"OPS/one.xhtml": chapter}))
    assert document.words() == ("Hello you",)
    back = document.rebuild(core_translated(document, lambda source: source.replace("Hello", "Hallo")))
    with zipfile.ZipFile(io.BytesIO(back)) as archive:
        changed = etree.fromstring(archive.read("OPS/one.xhtml"))
    expected = etree.fromstring(chapter.replace("Hello", "Hallo").encode())
    expected.set("{http://www.w3.org/XML/1998/namespace}lang", "fr")
    assert etree.tostring(changed, method="c14n") == etree.tostring(expected, method="c14n")


def test_in_html_a_slash_ends_no_script() -> None:
    assert read_html(b"<script/><p>Hello</p></script><p>you</p>", "en").words() == ("you",)


def test_a_chapter_that_came_back_broken_is_not_handed_out() -> None:
    document = read_book(book(**{"OPS/one.xhtml": CHAPTER}))
    with pytest.raises(GenerationError, match=r"one\.xhtml"):
        document.rebuild([CHAPTER.replace("</b>", "")])


def test_a_protected_book_is_refused() -> None:
    with pytest.raises(BrokenFileError, match="protected"):
        read_book(book(**{"META-INF/rights.xml": "<rights/>", "one.xhtml": CHAPTER}))


def test_a_spreadsheet_of_opendocument_keeps_its_formulas() -> None:
    opendocument, table, text = (
        pytest.importorskip(f"odf.{name}") for name in ("opendocument", "table", "text")
    )
    document = opendocument.OpenDocumentSpreadsheet()
    sheet = table.Table(name="A sheet")
    row = table.TableRow()
    for words, options in (
        ("Some text", {}),
        ("5", {"formula": "of:=2+3", "valuetype": "float", "value": "5"}),
    ):
        cell = table.TableCell(**options)
        cell.addElement(text.P(text=words))
        row.addElement(cell)
    sheet.addElement(row)
    document.spreadsheet.addElement(sheet)
    written = io.BytesIO()
    document.write(written)
    content = translate(
        read_opendocument, written.getvalue(), lambda each: each.replace("Some text", "Ein Text")
    )
    back = opendocument.load(io.BytesIO(content))
    cells = back.getElementsByType(table.TableCell)
    assert [str(cell) for cell in cells] == ["Ein Text", "5"]
    assert cells[1].getAttribute("formula") == "of:=2+3"
