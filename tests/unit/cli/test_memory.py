"""Which segments of a translation memory are sent with texts."""

import time
from pathlib import Path

import pytest

from dragoman.files import FilesError
from dragoman.memory import Memory, read_memory

HEAD = '<?xml version="1.0" encoding="{}"?><tmx version="1.4"><header srclang="en"/><body>'
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'


def tmx(*pairs: tuple[str, str], encoding: str = "utf-8") -> bytes:
    units = "".join(UNIT.format(*pair) for pair in pairs)
    return f"{HEAD.format(encoding)}{units}</body></tmx>".encode(encoding)


@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ("The cat sleeps.", "The cat sleeps."),
        ("  The cat\tsleeps. ", "The cat sleeps."),
        ("Birds sing. The cat sleeps. Fish swim!", "The cat sleeps."),
        ("Dr. No met Mr. X.", "Dr. No met Mr. X."),
        ("Birds sing. Dr. No met Mr. X.", "Dr. No met Mr. X."),
        ('He said: "Go!" Then he left.', "Then he left."),
        ("猫が寝ている。鳥が歌う。", "鳥が歌う。"),
        ("Version 3.5 is out. Get it", "Version 3.5 is out."),
    ],
)
def test_segments_are_found_in_texts(text: str, segment: str) -> None:
    memory = Memory({segment: "found", "the cat sleeps.": "of another case", "sleeps.": "no sentence"})
    assert memory.applying(["nothing here.", text]) == {segment: "found"}


@pytest.mark.slow
def test_finding_them_takes_linear_time() -> None:
    memory = Memory({"a": "b"})
    began_s = time.thread_time()
    assert memory.applying(["." * 200_000, "a. " * 100_000]) == {}
    assert time.thread_time() - began_s < 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_is_read(tmp_path: Path, encoding: str) -> None:
    file = tmp_path / "memory.tmx"
    file.write_bytes(tmx(("The cat sleeps.", "Die Katze schläft."), ("Tea", "Tee"), encoding=encoding))
    memory = read_memory(file, "en-GB", "de-AT")
    assert memory.translations == {"The cat sleeps.": "Die Katze schläft.", "Tea": "Tee"}
    assert memory.digest == read_memory(file, None, "de").digest
    assert memory.digest != Memory({"Tea": "Tee"}).digest


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tmx(("Tea", " ")), "no segment with a translation from en into de"),
        (b"<tmx", "no TMX: line 1"),
        (b"<!DOCTYPE tmx [<!ENTITY a 'b'>]><tmx>&a;</tmx>", "declares the entity"),
        (b"\xff\x00", "cannot be read"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_memory_is_refused(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "memory.tmx"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(FilesError, match=message):
        read_memory(file, "en", "de")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.memory.MAX_BYTES", 10)
    (tmp_path / "memory.tmx").write_bytes(tmx(("Tea", "Tee")))
    with pytest.raises(FilesError, match="at most 10 are read; divide it"):
        read_memory(tmp_path / "memory.tmx", "en", "de")
