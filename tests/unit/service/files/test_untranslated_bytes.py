"""What is not translated in an office document or a book stays byte for byte: parts, and what stands around texts."""

import io
import zipfile
from collections.abc import Mapping

import pytest
from tests.unit.service.files.documents import MADE
from tests.unit.service.files.real_documents import real_documents
from tests.unit.service.files.test_packages import PACKAGES

from dragoman_service.files.kinds import read

ZIPPED = (".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub")
FILES = {name: content for name, (content, _) in MADE.items()} | dict(real_documents())
FILES |= {path.name: path.read_bytes() for path in PACKAGES.iterdir()}
FILES = {name: content for name, content in FILES.items() if name.endswith(ZIPPED)}


def parts(content: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts: Mapping[str, bytes]) -> bytes:
    with zipfile.ZipFile(written := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            stored = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2011, 12, 13, 14, 15, 16)), part, stored)
    return written.getvalue()


@pytest.mark.parametrize("name", FILES)
def test_a_file_without_translations_is_the_same(name: str) -> None:
    file = read(name, FILES[name], "fr")
    assert file.rebuild(file.texts) == FILES[name]


@pytest.mark.parametrize("name", [name for name in FILES if name.endswith((".docx", ".pptx", ".xlsx"))])
def test_one_translated_text_changes_one_part(name: str) -> None:
    file = read(name, FILES[name], "fr")
    for place in (0, -1)[: len(file.texts)]:
        texts = list(file.texts)
        texts[place] = texts[place].replace("o", "ó")
        before, after = parts(FILES[name]), parts(file.rebuild(texts))
        changed = [
            each for each in after if before.get(each, before.get(each.replace("/", "\\"))) != after[each]
        ]
        assert len(changed) == (texts != list(file.texts))


def test_entries_keep_their_times_and_compression() -> None:
    content = packed({"mimetype": b"application/epub+zip"} | parts(FILES["two.epub"]))
    file = read("a.epub", content, "fr")
    back = zipfile.ZipFile(io.BytesIO(file.rebuild([text.replace("cat", "chat") for text in file.texts])))
    kept = [(each.filename, each.date_time, each.compress_type) for each in back.infolist()]
    before = zipfile.ZipFile(io.BytesIO(content)).infolist()
    assert kept == [(each.filename, each.date_time, each.compress_type) for each in before]


W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DECLARATIONS = {
    "none": b"",
    "a byte order mark": b"\xef\xbb\xbf<?xml version='1.0' encoding='utf-8'?>\r\n",
    "standalone": b'<?xml version="1.0" encoding="UTF-8" standalone="no"?>\n<!-- by a program -->\n<?app a?>\n',
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_what_stands_around_a_changed_parts_root_stays(name: str) -> None:
    kept = b"<w:p><w:r><w:t><![CDATA[1 < 2]]></w:t></w:r><!-- b --></w:p>"
    root = b"<w:document xmlns:w='%s'>%s<w:p><w:r><w:t>Hello</w:t></w:r></w:p></w:document>"
    part = DECLARATIONS[name] + root % (W.encode(), kept) + b"\r\n"
    file = read("a.docx", packed({"word/document.xml": part}), "fr")
    after = parts(file.rebuild(["Bonjour"]))["word/document.xml"]
    assert after.startswith(DECLARATIONS[name] + b"<w:document")
    assert after.endswith(b"</w:document>\r\n")
    assert kept in after


def test_a_part_in_another_encoding_is_still_read() -> None:
    body = "<w:p><w:r><w:t>Cat</w:t></w:r></w:p>"
    part = f"<?xml version='1.0' encoding='utf-16'?><w:document xmlns:w='{W}'>{body}</w:document>"
    file = read("a.docx", packed({"word/document.xml": part.encode("utf-16")}), "fr")
    back = read("a.docx", file.rebuild(["Chat"]), "fr")
    assert back.texts == ("Chat",)


OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


def test_other_bytes_of_a_changed_part_of_opendocument_stay() -> None:
    names = f"xmlns:office='{OFFICE}' xmlns:text=\"{TEXT}\" a='1 > 0'"
    kept = "<text:p\n a = 'b>' ><!-- <text:p> <draw:frame> -->12\r\n</text:p  >"
    body = f"{kept}<text:p>Hello</text:p>"
    part = f"\ufeff<?xml version='1.0'?>\r\n<office:document-content {names}>{body}</office:document-content>"
    file = read("a.odt", packed({"content.xml": part.encode()}), "fr")
    back = file.rebuild([text.replace("Hello", "Salut") for text in file.texts])
    assert parts(back)["content.xml"].decode() == part.replace("Hello", "Salut")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_a_chapter_keeps_its_encoding_and_line_ends(encoding: str) -> None:
    declared = encoding.removesuffix("-sig")
    chapter = (
        f"<?xml version='1.0' encoding='{declared}'?>\r\n<html xmlns='http://www.w3.org/1999/xhtml' xml:lang='en'>"
        "<body>\r\n<script src='a.js'/><p>The café</p>\r\n</body></html>\r\n"
    )
    book = packed(
        {"META-INF/container.xml": b"<c/>", "a.xhtml": chapter.encode(encoding), "b.html": b"<p>1<br/></p>"}
    )
    file = read("a.epub", book, "fr")
    back = parts(file.rebuild([text.replace("The café", "Le café “Ω”") for text in file.texts]))
    shown = "Le café “Ω”" if declared != "iso-8859-1" else "Le café &#8220;&#937;&#8221;"
    expected = chapter.replace("The café", shown).replace("xml:lang='en'", 'xml:lang="fr"')
    assert back["a.xhtml"].decode(encoding) == expected.replace("'a.js'/>", "'a.js'></script>")
    assert back["b.html"] == b"<p>1<br/></p>"
