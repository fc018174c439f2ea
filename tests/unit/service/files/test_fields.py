"""Sentences of office documents with fields, ruby and placeholders in them stay whole."""

import io
import zipfile

import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from tests.unit.service.files.test_line_breaks import segments
from tests.unit.service.files.test_packages import PACKAGES

from dragoman_protocols.errors import GenerationError
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


NAMES = "".join(
    f" xmlns:{name}='urn:oasis:names:tc:opendocument:xmlns:{of}:1.0'"
    for name, of in {"office": "office", "text": "text", "draw": "drawing", "dc": "dc", "svg": "svg"}.items()
)


def opendocument(content: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr(
            "content.xml",
            f"<office:document-content{NAMES}><office:text>{content}</office:text></office:document-content>",
        )
    return written.getvalue()


NOTE_BODY = (
    "<text:note-citation>1</text:note-citation><text:note-body><text:p>A note.</text:p></text:note-body>"
)
NOTE = f"<text:note>{NOTE_BODY}</text:note>"
COMMENT = "<office:annotation><dc:creator>Ann</dc:creator><text:p>A note.</text:p></office:annotation>"
FRAME = "<draw:frame><draw:text-box><text:p>A note.<draw:frame/></text:p></draw:text-box></draw:frame>"
RUBY = "<text:ruby><text:ruby-base>base</text:ruby-base><text:ruby-text>reading</text:ruby-text></text:ruby>"


@pytest.mark.parametrize("within", [NOTE, COMMENT, FRAME])
def test_notes_comments_and_frames_do_not_divide_a_sentence(within: str) -> None:
    content = opendocument(f"<text:p>The cat{within} sleeps.</text:p>{FRAME}")
    document = read("a.odt", content, "fr")
    assert segments(document) == ["The cat<x1/> sleeps.", "A note.", "A note."]
    back = document.rebuild([text.replace("A note", "A hint") for text in document.texts])
    with zipfile.ZipFile(io.BytesIO(back)) as archive:
        part = archive.read("content.xml").decode()
    assert f"The cat{within} sleeps.".replace("A note", "A hint") in part.replace('"', "'")
    with pytest.raises(GenerationError, match="lost"):
        document.rebuild([text.replace('<x id="0"/>', "") for text in document.texts])


def test_ruby_and_fields_of_opendocument_do_not_divide_a_sentence() -> None:
    date = "<text:span><text:date>May</text:date></text:span>"
    assert segments(read("a.odt", opendocument(f"<text:p>The {RUBY} of {date} is here.</text:p>"), "fr")) == [
        "The <x1><x2>base</x2><x3/></x1> of <x4><x5/></x4> is here."
    ]


@pytest.mark.parametrize(
    "name", ["user-field-get", "author-name", "sender-company", "file-name", "bibliography-mark"]
)
def test_what_the_program_computes_is_not_translated(name: str) -> None:
    field = f"<text:{name}>A value</text:{name}>"
    assert segments(read("a.odt", opendocument(f"<text:p>See {field} here.</text:p>"), "fr")) == [
        "See <x1/> here."
    ]


def test_what_was_deleted_is_not_translated() -> None:
    changes = f"<text:tracked-changes><text:p>Old{NOTE}</text:p></text:tracked-changes>"
    assert segments(read("a.odt", opendocument(f"{changes}<text:p>New</text:p>"), "fr")) == ["New"]


@pytest.mark.parametrize("cells", ["Table.B1:Table.B3", "'My table'.$B$1:'My table'.$B$3", "Table.B1"])
def test_the_cells_of_a_chart_stay(cells: str) -> None:
    content = opendocument(f"<text:p>Sales</text:p><draw:g><svg:desc>{cells}</svg:desc></draw:g>")
    document = read("a.ods", content, "fr")
    assert segments(document) == ["Sales"]
    with zipfile.ZipFile(io.BytesIO(document.rebuild(document.texts))) as archive:
        assert f"<svg:desc>{cells}</svg:desc></draw:g>" in archive.read("content.xml").decode()
