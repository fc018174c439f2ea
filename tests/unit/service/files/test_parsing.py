"""Large files are parsed and rebuilt in processes, which may end in any way."""

from __future__ import annotations

import asyncio
import io
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest
from tests.unit.service.files.documents import DOCUMENTS
from tests.unit.service.files.pdfs import lines_of, report

from dragoman_protocols.documents import result_name
from dragoman_protocols.errors import BrokenFileError, GenerationError, UnsupportedFileError
from dragoman_service.files import parsing
from dragoman_service.files.file_process import Task, result
from dragoman_service.files.kinds import read
from dragoman_service.files.parsing import (
    INLINE_BYTES,
    MARKDOWN_FACTOR,
    PDF_BYTES,
    FileParser,
    unpacked_bytes,
)

LIMIT_S = 60.0
LARGE = b"The cat sleeps.\n" * (INLINE_BYTES // 16 + 1)
STUB = """
import sys
sys.stdin.buffer.read()
{}
"""


def archive(**parts: bytes) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name, content)
    return written.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", b"abc", 3),
        ("a.PDF", b"abc", PDF_BYTES),
        ("a.md", b"abc", 3 * MARKDOWN_FACTOR),
        ("a.docx", archive(a=b"x" * 1_000_000, b=b"yz"), 1_000_002),
        ("a.docx", b"PK no archive", 13),
        ("a.docx", archive(**{f"a{n}": b"" for n in range(2000)}), parsing.MAX_AT_ONCE_BYTES),
        ("a.docx", b"PK\5\6", 4),
    ],
    ids=["text", "PDF", "Markdown", "archive", "no archive", "many entries", "cut off"],
)
def test_what_a_file_unpacks_to_is_known_before_it_is_parsed(
    name: str, content: bytes, expected: int
) -> None:
    assert unpacked_bytes(name, content) == expected


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[tuple[Any, Any]]:
    """Gets each process that is started, and its environment."""
    started: asyncio.Queue[tuple[Any, Any]] = asyncio.Queue()
    create = asyncio.create_subprocess_exec

    async def recorded(*args: Any, **options: Any) -> Any:
        process = await create(*args, **options)
        started.put_nowait((process, options["env"]))
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", recorded)
    return started


@pytest.mark.slow
@pytest.mark.parametrize("name", {name.rpartition(".")[2]: name for name in DOCUMENTS}.values())
async def test_a_process_has_the_same_results(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content, parser = DOCUMENTS[name][0], FileParser()
    here = await parser.parse(name, content, "de")
    monkeypatch.setattr(parsing, "INLINE_BYTES", -1)
    there = await parser.parse(name, content, "de")
    assert there == parsing.ParsedFile(*list(vars(here).values())[:-1])
    translations = [text.replace(" the ", " my ") for text in here.texts]
    rebuilt = await parser.rebuild(there, name, content, "de", translations)
    written = read(name, content, "de").rebuild(translations)
    again = result_name(name)
    assert read(again, rebuilt, "de").texts == read(again, written, "de").texts


@pytest.mark.slow
async def test_only_large_files_and_pdfs_have_a_process_without_environment(
    processes: asyncio.Queue[tuple[Any, Any]],
) -> None:
    parser = FileParser()
    for name, content, started in (
        ("a.txt", b"Hello", 0),
        ("a.txt", LARGE, 2),
        ("a.pdf", lines_of("Hello"), 2),
    ):
        file = await parser.parse(name, content, "de")
        assert await parser.rebuild(file, name, content, "de", file.texts)
        assert [processes.get_nowait()[1] for _ in range(processes.qsize())] == [{}] * started


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.txt", b"\xff" * (INLINE_BYTES + 1), BrokenFileError),
        ("a.xyz", LARGE, UnsupportedFileError),
        ("a.pdf", b"no PDF", BrokenFileError),
    ],
)
async def test_a_refusal_in_a_process_is_that_of_the_reader(
    name: str, content: bytes, error: type[Exception]
) -> None:
    with pytest.raises(error) as there:
        await FileParser().parse(name, content, "de")
    with pytest.raises(error) as here:
        read(name, content, "de")
    assert str(there.value) == str(here.value)


def test_errors_of_readers_are_results() -> None:
    assert result(Task("a.json", b"{", "de"))[0]["refused"] == "broken_file"
    book = next(name for name in DOCUMENTS if name.endswith(".epub"))
    content = DOCUMENTS[book][0]
    broken = tuple("<p>" for _ in read(book, content, "de").texts)
    assert result(Task(book, content, "de", broken))[0]["refused"] == GenerationError.code
    assert "UnicodeEncodeError" in result(Task("a.txt", b"", "de", ("\ud800",)))[0]["defect"]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, processes: Any) -> Any:
    """Replaces the program of the processes."""
    create = asyncio.create_subprocess_exec

    def replace(code: str) -> None:
        (tmp_path / "stub.py").write_text(STUB.format(code))

        async def stubbed(python: str, *_: str, **options: Any) -> Any:
            return await create(python, str(tmp_path / "stub.py"), **options)

        monkeypatch.setattr(asyncio, "create_subprocess_exec", stubbed)

    return replace


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "sys.exit(1)",
        "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 1))\nwhile True: pass",
        "print('half', end='')",
    ],
)
async def test_a_process_that_dies_is_an_error_of_its_file_alone(program: Any, code: str) -> None:
    program(code)
    parser = FileParser()
    async with asyncio.timeout(LIMIT_S):
        with pytest.raises(BrokenFileError, match="cannot be read within"):
            await parser.parse("a.txt", LARGE, "de")
        assert (await parser.parse("a.txt", b"Hello", "de")).texts == ("Hello",)


@pytest.mark.slow
async def test_a_defect_of_a_reader_is_no_error_of_the_file(program: Any) -> None:
    program('print(\'{"defect": "KeyError: 1"}\')')
    with pytest.raises(RuntimeError, match="KeyError"):
        await FileParser().parse("a.txt", LARGE, "de")


@pytest.mark.slow
async def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MAX_S", 0.001)
    with pytest.raises(BrokenFileError, match="cannot be read within"):
        await FileParser().parse("a.pdf", report().content(), "de")


@pytest.mark.slow
async def test_a_file_that_is_cancelled_ends_its_process_and_makes_room(
    program: Any, processes: asyncio.Queue[tuple[Any, Any]]
) -> None:
    program("import time; time.sleep(600)")
    parser = FileParser()
    files = [asyncio.create_task(parser.parse("a.pdf", b"", "de")) for _ in range(3)]
    async with asyncio.timeout(LIMIT_S):
        started = [await processes.get() for _ in range(2)]
        assert processes.empty()
        files[0].cancel()
        started.append(await processes.get())
        assert started[0][0].returncode == -signal.SIGKILL
        for each in files:
            each.cancel()
        await asyncio.wait(files)
    assert [process.returncode for process, _ in started] == [-signal.SIGKILL] * 3
