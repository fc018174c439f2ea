"""Files of every kind through the demo model, and opened again by others' libraries."""

import io
from typing import Any

import docx
import pytest
from tests.unit.service.files.pdfs import lines_of, scan

POOL, PISCINE = "Where is the swimming pool?", "Où est la piscine ?"
MUSEUM, MUSEE = "The museum will close tomorrow.", "Le musée fermera demain."


def translated(pod: Any, name: str, content: bytes, source: str = "en", target: str = "fr") -> bytes:
    form = {"source": source, "target": target}
    answer = pod.client.post("/translate_file", data=form, files={"file": (name, content)})
    assert answer.status_code == 200, answer.text
    return bytes(pod.client.get(answer.json()["translatedFileUrl"]).content)


@pytest.mark.parametrize("source", ["en", "auto"])
def test_text(demo_pod: Any, source: str) -> None:
    content = f"  {POOL}\r\n\r\n\t{MUSEUM} \r\n".encode()
    assert translated(demo_pod, "a.txt", content, source).decode() == f"  {PISCINE}\r\n\r\n\t{MUSEE} \r\n"


def test_the_answer_has_the_findings_of_a_file(scripted_pod: Any) -> None:
    form = {"source": "en", "target": "fr"}
    page = "<p>The <b>cat</b> sleeps.</p>"
    answer = scripted_pod.client.post("/translate_file", data=form, files={"file": ("a.html", page)})
    assert answer.json()["findings"] == {"tags_aligned": 1}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.md", "# Good day\n\n- friends\n", "# yad dooG\n\n- sdneirf\n"),
        ("a.json", '{"key": ["Good day", 1.50]}', '{"key": ["yad dooG", 1.50]}'),
        ("a.yaml", "key: Good day # remark\n", "key: yad dooG # remark\n"),
        ("a.csv", "id_1,Good day\r\n", "id_1,yad dooG\r\n"),
        ("a.strings", '"key" = "Good day";\n', '"key" = "yad dooG";\n'),
        ("a.po", 'msgid "Good day"\nmsgstr ""\n', 'msgid "Good day"\nmsgstr "yad dooG"\n'),
    ],
)
def test_files_of_programs(scripted_pod: Any, name: str, content: str, expected: str) -> None:
    answer = translated(scripted_pod, name, content.encode()).decode()
    assert answer.removeprefix('#\nmsgid ""\nmsgstr ""\n\n') == expected


def test_a_pdf_comes_back_as_a_word_document(demo_pod: Any) -> None:
    form = {"source": "en", "target": "fr"}
    files = {"file": ("Letter 1.PDF", lines_of(POOL, "", MUSEUM))}
    answer = demo_pod.client.post("/translate_file", data=form, files=files)
    url = answer.json()["translatedFileUrl"]
    assert url.endswith(".Letter_1_fr.docx")
    download = demo_pod.client.get(url)
    assert download.headers["content-type"].endswith("wordprocessingml.document")
    assert download.headers["content-disposition"] == "attachment; filename=Letter_1_fr.docx"
    assert [each.text for each in docx.Document(io.BytesIO(download.content)).paragraphs] == [PISCINE, MUSEE]


def test_a_scan_is_refused(scripted_pod: Any) -> None:
    form = {"source": "en", "target": "fr"}
    answer = scripted_pod.client.post("/translate_file", data=form, files={"file": ("a.pdf", scan())})
    assert answer.status_code == 400
    assert "run OCR first" in answer.json()["error"]


def test_html_keeps_its_markup_and_its_entities(demo_pod: Any) -> None:
    page = (
        '<!doctype html>\n<html><head><title>{}</title><style>p > b {{}}</style></head>\n<body class="a&amp;b">'
        "<!-- {} --><p>{}</p>&nbsp;&copy;<code>Where is it?</code></body></html>\n"
    )
    answer = translated(demo_pod, "a.html", page.format(POOL, POOL, MUSEUM).encode())
    assert answer.decode() == page.format(PISCINE, POOL, MUSEE)


def test_subtitles_keep_their_times(demo_pod: Any) -> None:
    cues = (
        "1\n00:00:01,000 --> 00:00:02,500\n{}\n\n"
        "2\n00:00:03,000 --> 00:00:04,000 X1:40\n{{\\an8}}- {}\n- {}\n\n3\n00:00:05,000 --> 00:00:06,000\n♪\n"
    )
    answer = translated(demo_pod, "a.srt", cues.format(POOL, POOL, MUSEUM).encode())
    assert answer.decode() == cues.format(PISCINE, PISCINE, MUSEE)


def test_two_lines_of_a_subtitle_are_one_sentence(demo_pod: Any) -> None:
    cue = "1\n00:00:01,000 --> 00:00:02,500\n{}\n"
    answer = translated(demo_pod, "a.srt", cue.format("Where is\nthe swimming pool?").encode()).decode()
    assert answer == cue.format("Où est la\npiscine ?")


def test_word(demo_pod: Any) -> None:
    document = docx.Document()
    document.add_heading(POOL, 1)
    paragraph = document.add_paragraph()
    for word in MUSEUM.split(" "):
        paragraph.add_run(f"{word} ")
    document.add_paragraph().add_run(MUSEUM).bold = True
    mixed = document.add_paragraph(f"{POOL} ")
    mixed.add_run(MUSEUM).italic = True
    document.add_table(1, 1).cell(0, 0).text = MUSEUM
    document.sections[0].footer.paragraphs[0].text = POOL
    written = io.BytesIO()
    document.save(written)
    back = docx.Document(io.BytesIO(translated(demo_pod, "a.docx", written.getvalue())))
    assert [each.text.strip() for each in back.paragraphs[:3]] == [PISCINE, MUSEE, MUSEE]
    style = back.paragraphs[0].style
    assert style is not None
    assert style.name == "Heading 1"
    assert [run.bold for run in back.paragraphs[2].runs] == [True]
    # The model was not trained on marked formats, which come back all the same.
    assert back.paragraphs[3].text == f"{PISCINE} {MUSEE}"
    assert "".join(run.text for run in back.paragraphs[3].runs if run.italic).strip() in MUSEE
    assert back.tables[0].cell(0, 0).text == MUSEE
    assert back.sections[0].footer.paragraphs[0].text == PISCINE


def test_powerpoint(demo_pod: Any) -> None:
    pptx = pytest.importorskip("pptx")
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[5])
    slide.shapes.title.text = POOL
    written = io.BytesIO()
    show.save(written)
    back = pptx.Presentation(io.BytesIO(translated(demo_pod, "a.pptx", written.getvalue())))
    assert back.slides[0].shapes.title.text == PISCINE


@pytest.mark.parametrize("kind", ["odt", "odp"])
def test_opendocument(demo_pod: Any, kind: str) -> None:
    opendocument, text = pytest.importorskip("odf.opendocument"), pytest.importorskip("odf.text")
    document = opendocument.OpenDocumentText()
    for sentence in (POOL, MUSEUM):
        document.text.addElement(text.P(text=sentence))
    written = io.BytesIO()
    document.write(written)
    back = opendocument.load(io.BytesIO(translated(demo_pod, f"a.{kind}", written.getvalue())))
    assert [str(each) for each in back.getElementsByType(text.P)] == [PISCINE, MUSEE]


def test_a_book(demo_pod: Any) -> None:
    epub = pytest.importorskip("ebooklib.epub")
    book = epub.EpubBook()
    book.set_title("Title")
    chapter = epub.EpubHtml(title="One", file_name="one.xhtml")
    chapter.content = f"<p>{POOL}</p><p>{MUSEUM}</p>"
    book.add_item(chapter)
    book.add_item(epub.EpubNcx())
    book.spine = [chapter]
    written = io.BytesIO()
    epub.write_epub(written, book)
    back = epub.read_epub(io.BytesIO(translated(demo_pod, "a.epub", written.getvalue())))
    content = back.get_item_with_href("one.xhtml").get_content().decode()
    assert f"<p>{PISCINE}</p>" in content
    assert f"<p>{MUSEE}</p>" in content
