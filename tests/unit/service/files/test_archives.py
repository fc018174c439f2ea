import io
import struct
import tracemalloc
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman_protocols.errors import BrokenFileError
from dragoman_service.files import archives
from dragoman_service.files.archives import Archive, parsed
from dragoman_service.files.kinds import read

ZIPPED = [".docx", ".pptx", ".odt", ".odp", ".epub"]


def zipped(**parts: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("mimetype"), b"application/epub+zip")
        for name, part in parts.items():
            archive.writestr(zipfile.ZipInfo(name), part, zipfile.ZIP_DEFLATED)
    return written.getvalue()


def test_replacing_keeps_order_and_compression() -> None:
    content = Archive(zipped(a=b"1" * 1000, b=b"2")).replacing({"a": b"3"})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["mimetype", "a", "b"]
        assert archive.read("a") == b"3"
        assert archive.getinfo("mimetype").compress_type == zipfile.ZIP_STORED
        assert archive.getinfo("b").compress_type == zipfile.ZIP_DEFLATED


def test_a_bomb_is_refused_before_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MAX_UNPACKED_BYTES", 10_000)
    with pytest.raises(BrokenFileError, match="10000 bytes"):
        Archive(zipped(a=b"0" * 20_000))


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_entry_larger_than_declared_is_refused_before_it_is_unpacked(method: int) -> None:
    written = io.BytesIO()
    size = 32 * 1024 * 1024
    with zipfile.ZipFile(written, "w", method) as archive:
        archive.writestr("a", bytes(size))
    content = written.getvalue().replace(struct.pack("<L", size), struct.pack("<L", 100))
    tracemalloc.start()
    try:
        with pytest.raises(BrokenFileError):
            Archive(content).part("a")
        assert tracemalloc.get_traced_memory()[1] < 1024 * 1024
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("ending", ZIPPED)
@pytest.mark.parametrize(
    "content", [b"", b"PK", b"PK\x03\x04 what", zipped(), zipped(**{"content.xml": b"<a"})]
)
def test_what_is_no_document_is_refused(ending: str, content: bytes) -> None:
    with pytest.raises(BrokenFileError):
        read(f"a{ending}", content, "de")


@given(st.data())
def test_a_damaged_archive_is_refused_or_read(data: st.DataObject) -> None:
    content = bytearray(zipped(**{"content.xml": b"<a>text</a>" * 9, "META-INF/container.xml": b"<a/>"}))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    for ending in ZIPPED:
        try:
            document = read(f"a{ending}", bytes(content), "de")
            document.rebuild(document.texts)
        except BrokenFileError:
            continue


@pytest.mark.parametrize(
    "part",
    [
        b'<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
        b'<!DOCTYPE a SYSTEM "file:///etc/passwd"><a/>',
        b"<a><b></a>",
        b"",
    ],
)
def test_a_part_that_is_no_plain_xml_is_refused(part: bytes) -> None:
    with pytest.raises(BrokenFileError):
        parsed(part)
