import codecs

import pytest

from dragoman_protocols.errors import BrokenFileError, UnsupportedFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.html import read_html
from dragoman_service.files.kinds import read
from dragoman_service.files.plain import read_text


@pytest.mark.parametrize(
    "content",
    [b"", b"Hello\r\n\n  world", "नमस्ते".encode(), codecs.BOM_UTF8 + b"Hello", "Größe".encode("utf-16")],
)
def test_a_text_file_comes_back_byte_for_byte(content: bytes) -> None:
    document = read_text(content)
    assert document.format is Format.PLAIN
    assert document.rebuild(document.texts) == content


def test_a_translation_is_written_in_the_encoding_of_the_source() -> None:
    assert read_text("Hi".encode("utf-16")).rebuild(["Größe"]).decode("utf-16") == "Größe"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"Gr\xf6\xdfe", b"\x80"])
def test_another_encoding_is_refused_rather_than_guessed(content: bytes) -> None:
    with pytest.raises(BrokenFileError, match="UTF-8"):
        read_text(content)


def test_html_declares_its_encoding_and_keeps_it() -> None:
    page = b'<html lang="en"><head><meta charset="iso-8859-1"></head><body>Gr\xf6\xdfe</body></html>'
    document = read_html(page, "en")
    assert document.format is Format.HTML
    assert "Größe" in document.texts[0]
    assert document.rebuild(document.texts) == page
    translated = document.rebuild([document.texts[0].replace("Größe", "आकार")])
    assert "&#2310;" in translated.decode("iso-8859-1")


def test_html_of_an_unknown_encoding_is_refused() -> None:
    with pytest.raises(BrokenFileError, match="x-klingon"):
        read_html(b'<meta charset="x-klingon">', "en")


def test_a_file_is_known_by_the_end_of_its_name() -> None:
    assert read("a.b/LETTER.TXT", b"a b", "de").texts == ("a b",)
    for name in ("letter.doc", "letter", "", ".docx"):
        with pytest.raises(UnsupportedFileError, match=r"\.txt, \.md, \.html"):
            read(name, b"a b", "de")


def test_a_page_s_words_are_what_is_shown_of_it() -> None:
    page = b"<html><head><style>p { color: red }</style></head><body><!-- no --><p>Hello <b>you</b></p></body></html>"
    assert read_html(page, "en").words() == ("Hello you",)
    assert read_text(b"1 < 2").words() == ("1 < 2",)
