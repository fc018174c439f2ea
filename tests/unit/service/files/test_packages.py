"""Parts of office documents and books are found by what they are, never by their names."""

import io
import zipfile
from pathlib import Path

import docx
import pytest
from tests.unit.service.files.documents import saved, workbook
from tests.unit.service.files.real_documents import report, talk
from tests.unit.service.files.test_office import shouted, translate

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files.document import FileDocument
from dragoman_service.files.kinds import read

PACKAGES = Path(__file__).parent / "packages"


def document(name: str) -> FileDocument:
    return read(name, (PACKAGES / name).read_bytes(), "fr")


def part(content: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(name).decode()


def renamed(content: bytes, names: dict[str, str]) -> bytes:
    """A package whose parts have other names, in its relationships and content types, too."""
    written = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(written, "w") as new:
        for name in old.namelist():
            part = old.read(name)
            if name.endswith((".rels", "[Content_Types].xml")):
                for before, after in names.items():
                    part = part.replace(Path(before).name.encode(), Path(after).name.encode())
            new.writestr(names.get(name, name), part)
    return written.getvalue()


MADE = {"docx": report(), "pptx": talk(), "xlsx": workbook()}


@pytest.mark.parametrize(
    ("ending", "before", "after"),
    [
        ("docx", "word/document.xml", "word/document2.xml"),
        ("docx", "word/header1.xml", "word/top.xml"),
        ("xlsx", "xl/sharedStrings.xml", "xl/SharedStrings.xml"),
        ("xlsx", "xl/worksheets/sheet1.xml", "xl/worksheets/first.part"),
        ("pptx", "ppt/slides/slide1.xml", "ppt/slides/intro.xml"),
    ],
)
def test_parts_of_any_name_are_translated(ending: str, before: str, after: str) -> None:
    by_name = read(f"a.{ending}", MADE[ending], "fr").texts
    assert by_name
    assert sorted(read(f"a.{ending}", renamed(MADE[ending], {before: after}), "fr").texts) == sorted(by_name)


def test_a_package_with_backslashes_is_read_and_written_as_the_format_has_it() -> None:
    content = (PACKAGES / "backslash.docx").read_bytes()
    back = translate(lambda content: read("a.docx", content, "fr"), content)
    assert "word/document.xml" in zipfile.ZipFile(io.BytesIO(back)).namelist()
    assert [each.text for each in docx.Document(io.BytesIO(back)).paragraphs] == ["THE CAT SLEEPS."]


def test_a_workbook_that_is_named_a_document_is_refused() -> None:
    with pytest.raises(BrokenFileError, match="no document of this kind"):
        read("a.docx", workbook(), "fr")


def test_a_book_has_the_parts_that_its_package_document_names() -> None:
    two = document("two.epub")
    assert [
        next(w for w in ("cat book", "second chapter", "first chapter") if w in t) for t in two.texts
    ] == [
        "cat book",
        "first chapter",
        "second chapter",
        "cat book",
    ]
    back = two.rebuild([text.replace("The first chapter", "Premier") for text in two.texts])
    assert "<text>Premier</text>" in part(back, "OEBPS/toc.ncx")
    assert len(document("three.epub").texts) == 3


@pytest.mark.parametrize("href", ["chapter%20one.xml", "./chapter one.xml", "../OEBPS/chapter%20one.xml#a"])
def test_a_books_references_are_paths(href: str) -> None:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("META-INF/container.xml", '<c><rootfile full-path="OEBPS/b.opf"/></c>')
        archive.writestr(
            "OEBPS/b.opf",
            f'<p><manifest><item href="{href}" media-type="application/xhtml+xml"/></manifest></p>',
        )
        archive.writestr("OEBPS/chapter one.xml", "<html><body><p>The cat sleeps.</p></body></html>")
        archive.writestr("OEBPS/draft.xhtml", "<html><body><p>No part of the book.</p></body></html>")
    assert [shouted(text) for text in read("a.epub", written.getvalue(), "fr").texts] == [
        "<html><body><p>THE CAT SLEEPS.</p></body></html>"
    ]


SHOWN = "<a:p xmlns:a='http://schemas.openxmlformats.org/drawingml/2006/main'><a:r><a:t>{}</a:t></a:r></a:p>"
OPEN = "http://schemas.openxmlformats.org"
MICROSOFT = "http://schemas.microsoft.com/office"
CHART = f"{OPEN}/drawingml/2006/chart"
LABEL = "<c:strRef><c:strCache><c:pt idx='0'><c:v>{}</c:v></c:pt></c:strCache></c:strRef>"
BESIDE = {
    "a diagram's data": f"<d:dataModel xmlns:d='{OPEN}/drawingml/2006/diagram'><d:t>{SHOWN}</d:t></d:dataModel>",
    "a diagram's drawing": f"<d:drawing xmlns:d='{MICROSOFT}/drawing/2008/diagram'><d:sp>{SHOWN}</d:sp></d:drawing>",
    "a chart's title": f"<c:chartSpace xmlns:c='{CHART}'><c:rich>{SHOWN}</c:rich></c:chartSpace>",
    "a chart's labels": f"<c:chartSpace xmlns:c='{CHART}'><c:cat>{LABEL}</c:cat></c:chartSpace>",
}
P = f"xmlns:p='{OPEN}/presentationml/2006/main'"
BOX = f"<p:sp><p:nvSpPr><p:nvPr/></p:nvSpPr><p:txBody>{SHOWN}</p:txBody></p:sp>"
ON_SLIDES = {
    "a layout's text": f"<p:sldLayout {P}>{BOX}</p:sldLayout>",
    "a comment": f"<p:cmLst {P}><p:cm><p:text>{{}}</p:text></p:cm></p:cmLst>",
    "a new comment": f"<p:cmLst xmlns:p='{MICROSOFT}/powerpoint/2018/8/main'><p:cm>{SHOWN}</p:cm></p:cmLst>",
}
SHEET_DRAWING = f"xmlns:x='{OPEN}/drawingml/2006/spreadsheetDrawing'"
ON_SHEETS = {
    "a cell's comment": "<comments xmlns='urn:x'><comment><text><t>{}</t></text></comment></comments>",
    "a thread": "<ThreadedComments xmlns='urn:x'><threadedComment><text>{}</text></threadedComment></ThreadedComments>",
    "a shape": f"<x:wsDr {SHEET_DRAWING}><x:txBody>{SHOWN}</x:txBody></x:wsDr>",
}
WITH = {"docx": BESIDE, "pptx": BESIDE | ON_SLIDES, "xlsx": BESIDE | ON_SHEETS}


@pytest.mark.parametrize(
    ("ending", "name"), [(ending, name) for ending, parts in WITH.items() for name in parts]
)
def test_text_beside_the_main_part_is_translated(ending: str, name: str) -> None:
    written, content = WITH[ending][name], MADE[ending]
    added = io.BytesIO(content)
    with zipfile.ZipFile(added, "a") as archive:
        archive.writestr("other/part.xml", written.format("Smart step one"))
    before = read(f"a.{ending}", content, "fr").texts
    document = read(f"a.{ending}", added.getvalue(), "fr")
    assert sorted(document.texts) == sorted((*before, "Smart step one"))
    assert "SMART STEP ONE" in part(
        document.rebuild([shouted(text) for text in document.texts]), "other/part.xml"
    )


WORD_NAMES = " ".join(
    f"xmlns:{prefix}='{OPEN}/{of}'"
    for prefix, of in {
        "w": "wordprocessingml/2006/main",
        "wp": "drawingml/2006/wordprocessingDrawing",
        "a": "drawingml/2006/main",
    }.items()
)
SEEN_ATTRIBUTES = {
    "a picture's description": "<w:p><w:r><wp:inline><wp:docPr id='1' name='Picture 1' descr='{}'/></wp:inline></w:r>"
    "</w:p>",
    "a link's hint": "<w:p><w:hyperlink w:tooltip='{}'><w:r><w:t>1</w:t></w:r></w:hyperlink></w:p>",
    "a table's caption": "<w:tbl><w:tblPr><w:tblCaption w:val='{}'/></w:tblPr></w:tbl>",
    "an item of a list": "<w:sdt><w:sdtPr><w:dropDownList><w:listItem w:displayText='{}' w:value='a_1'/>"
    "</w:dropDownList></w:sdtPr></w:sdt>",
    "WordArt": "<w:p><w:r><w:pict><v:shape xmlns:v='urn:schemas-microsoft-com:vml'><v:textpath string='{}'/></v:shape>"
    "</w:pict></w:r></w:p>",
}


@pytest.mark.parametrize("name", SEEN_ATTRIBUTES)
def test_attributes_that_are_read_are_translated(name: str) -> None:
    with zipfile.ZipFile(written := io.BytesIO(), "w") as archive:
        body = SEEN_ATTRIBUTES[name].format("A cat &amp; a dog")
        archive.writestr(
            "word/document.xml", f"<w:document {WORD_NAMES}><w:body>{body}</w:body></w:document>"
        )
    found = read("a.docx", written.getvalue(), "fr")
    assert found.texts == ("A cat &amp; a dog",)
    assert "A CAT &amp; A DOG" in part(found.rebuild([shouted(*found.texts)]), "word/document.xml")


CHART_PARTS = {
    "a series' name": "<c:ser><c:tx><c:v>{}</c:v></c:tx></c:ser>",
    "a literal label": "<c:cat><c:strLit><c:pt idx='0'><c:v>{}</c:v></c:pt></c:strLit></c:cat>",
    "a new chart's title": "<c:title><c:tx><c:txData><c:v>{}</c:v></c:txData></c:tx></c:title>",
    "a new chart's label": "<c:strDim type='cat'><c:lvl ptCount='1'><c:pt idx='0'>{}</c:pt></c:lvl></c:strDim>",
}


@pytest.mark.parametrize("name", CHART_PARTS)
def test_texts_of_charts_are_translated_once(name: str) -> None:
    added = io.BytesIO(talk())
    with zipfile.ZipFile(added, "a") as archive:
        archive.writestr(
            "c.xml",
            f"<c:chartSpace xmlns:c='{CHART}'>{CHART_PARTS[name].format('North side')}</c:chartSpace>",
        )
    assert read("a.pptx", added.getvalue(), "fr").texts.count("North side") == 1


def test_the_title_of_a_document_is_translated() -> None:
    letter = docx.Document()
    letter.core_properties.title, letter.core_properties.author = "Annual report", "Ann Author"
    back = docx.Document(io.BytesIO(translate(lambda content: read("a.docx", content, "fr"), saved(letter))))
    assert (back.core_properties.title, back.core_properties.author) == ("ANNUAL REPORT", "Ann Author")


def test_what_only_the_editor_of_a_layout_sees_stays() -> None:
    added = io.BytesIO(talk())
    with zipfile.ZipFile(added, "a") as archive:
        archive.writestr(
            "other/part.xml",
            ON_SLIDES["a layout's text"]
            .replace("<p:nvPr/>", "<p:nvPr><p:ph/></p:nvPr>")
            .format("Click here"),
        )
    assert read("a.pptx", added.getvalue(), "fr").texts == read("a.pptx", talk(), "fr").texts


def test_a_chart_within_an_opendocument_file_is_translated() -> None:
    written = io.BytesIO()
    namespaces = "".join(
        f" xmlns:{each}='urn:oasis:names:tc:opendocument:xmlns:{each}:1.0'" for each in ("office", "text")
    )
    content = f"<office:document-content{namespaces}><text:p>{{}}</text:p></office:document-content>"
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("content.xml", content.format("The cat sleeps."))
        archive.writestr("Object 1/content.xml", content.format("Chart title"))
        archive.writestr("settings.xml", "<settings>No text</settings>")
    assert read("a.odp", written.getvalue(), "fr").words() == ("The cat sleeps.", "Chart title")


def test_documents_within_a_document_are_named_as_left() -> None:
    assert document("altchunk.docx").left == ("word/afchunk.mht",)
    assert document("two.epub").left == ()
    assert read("a.docx", MADE["docx"], "fr").left == ()


def test_objects_of_other_programs_in_opendocument_are_named_as_left() -> None:
    names = "xmlns:m='urn:oasis:names:tc:opendocument:xmlns:manifest:1.0'"
    entries = "".join(
        f"<m:file-entry m:full-path='{path}' m:media-type='{kind}'/>"
        for path, kind in {
            "Object 1": "application/vnd.sun.star.oleobject",
            "Object 2/content.xml": "text/xml",
            "ObjectReplacements/Object 1": "application/x-openoffice-gdimetafile",
            "gone": "application/msword",
        }.items()
    )
    office = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
    with zipfile.ZipFile(written := io.BytesIO(), "w") as archive:
        archive.writestr("content.xml", f"<o:document-content xmlns:o='{office}'/>")
        archive.writestr("META-INF/manifest.xml", f"<!DOCTYPE m><m:manifest {names}>{entries}</m:manifest>")
        for name in ("Object 1", "Object 2/content.xml", "ObjectReplacements/Object 1"):
            archive.writestr(name, "")
    assert read("a.odt", written.getvalue(), "fr").left == ("Object 1",)


def test_of_the_properties_of_opendocument_the_title_is_translated() -> None:
    names = "xmlns:office='urn:oasis:names:tc:opendocument:xmlns:office:1.0' xmlns:dc='dc' xmlns:meta='meta'"
    others = "<meta:generator>A program</meta:generator><dc:subject>Words</dc:subject><meta:keyword>Key</meta:keyword>"
    inner = f"<office:meta>{others}<dc:title>A cat</dc:title></office:meta>"
    meta = f"<office:document-meta {names}>{inner}</office:document-meta>"
    with zipfile.ZipFile(written := io.BytesIO(), "w") as archive:
        archive.writestr("content.xml", f"<office:document-content {names}/>")
        archive.writestr("meta.xml", meta)
    assert [each for each in read("a.odt", written.getvalue(), "fr").words() if each] == ["A cat"]
