"""Files are parsed and rebuilt: small ones in a thread, all others in a process each.

A process that is killed, or exceeds its limits, is an error of its file alone.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import struct
import sys
import zipfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import PurePath
from typing import Any

from dragoman_protocols.errors import BrokenFileError
from dragoman_protocols.translation import Format
from dragoman_service.files.document import EMBEDDED, MAX_EMBEDDED_BYTES, FileDocument
from dragoman_service.files.file_process import CPU_S, REFUSALS, TOO_MUCH, Task
from dragoman_service.files.kinds import read

PROGRAM = "dragoman_service.files.file_process"

MAX_S = 10.0 * CPU_S
"""Of one process, whose CPU time is limited, on a machine whose other processes come first."""

INLINE_BYTES = 128 * 1024
"""Files that unpack to more are parsed in a process: so much XML takes about 20 ms, a process starts in 200 ms."""

MAX_AT_ONCE_BYTES = 8 * 1024 * 1024
"""Unpacked bytes of files in processes at the same time; a larger file has its process alone. Trees of XML take 20
times as much."""

PDF_BYTES = 4 * 1024 * 1024
"""Counted for a PDF, whose unpacked size is not known."""

MARKDOWN_FACTOR = 8
"""Markdown takes longer than other files of its size: 128 KB of brackets take 1.3 s."""

EMBEDDED_FACTOR = 16
"""Documents within documents unpack to about so much; a file with one has a process, as they could unpack to more."""

END_OF_DIRECTORY = b"PK\5\6"
MAX_DIRECTORY_BYTES = 64 * 1024
"""Of an archive's directory that is read in the event loop: about 1,000 entries, a few milliseconds."""


def unpacked_bytes(name: str, content: bytes) -> int:
    """The size of a file without compression, as its archive states it; of PDFs and Markdown what compares to it."""
    ending = PurePath(name).suffix.lower()
    if ending == ".pdf":
        return PDF_BYTES
    if ending == ".md":
        return MARKDOWN_FACTOR * len(content)
    at = content.rfind(END_OF_DIRECTORY)
    if not content.startswith(b"PK") or at < 0 or at + 16 > len(content):
        return len(content)
    (directory_bytes,) = struct.unpack_from("<I", content, at + 12)
    if directory_bytes > MAX_DIRECTORY_BYTES:
        return MAX_AT_ONCE_BYTES
    with suppress(Exception), zipfile.ZipFile(BytesIO(content)) as archive:
        within = sum(
            entry.file_size for entry in archive.infolist() if entry.filename.lower().endswith(EMBEDDED)
        )
        more = INLINE_BYTES + min(EMBEDDED_FACTOR * within, MAX_EMBEDDED_BYTES) if within else 0
        return more + sum(entry.file_size for entry in archive.infolist())
    return len(content)  # It is damaged, which its reader reports.


@dataclass(frozen=True)
class ParsedFile:
    """A file's texts, and how they are written; see `FileDocument`.

    Args:
        words: The texts without markup.
        document: Of a file that was parsed in this process; None: `FileParser.rebuild` parses it again, so that
            no process waits for the translation with a tree in its memory.
    """

    texts: tuple[str, ...]
    words: tuple[str, ...]
    format: Format
    ignore_tags: frozenset[str]
    splitting_tags: frozenset[str]
    non_splitting_tags: frozenset[str]
    left: tuple[str, ...] = ()
    document: FileDocument | None = None


class FileParser:
    """Parses and rebuilds files; used from the event loop alone."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._ended = asyncio.Event()
        self._running_bytes = 0

    async def parse(self, name: str, content: bytes, target_lang: str) -> ParsedFile:
        """A file, by the ending of its name.

        Args:
            name: Its ending is its kind.
            content: The file.
            target_lang: BCP-47 tag of the translation's language.

        Raises:
            UnsupportedFileError: Files of this kind are not translated.
            BrokenFileError: It cannot be read, or not within the limits.
        """
        if unpacked_bytes(name, content) <= INLINE_BYTES:
            return await asyncio.to_thread(parsed, name, content, target_lang)
        line, _ = await self._in_process(Task(name, content, target_lang))
        return await asyncio.to_thread(_from_line, line)

    async def rebuild(
        self, file: ParsedFile, name: str, content: bytes, target_lang: str, translations: Sequence[str]
    ) -> bytes:
        """The file with the translations of its texts.

        Raises:
            BrokenFileError: It cannot be rebuilt within the limits.
            GenerationError: A translation broke its structure.
        """
        if file.document is not None:
            return await asyncio.to_thread(file.document.rebuild, translations)
        _, rebuilt = await self._in_process(Task(name, content, target_lang, tuple(translations)))
        return rebuilt

    async def _in_process(self, task: Task) -> tuple[bytes, bytes]:
        """The line and the content of the process's output."""
        async with self._room(unpacked_bytes(task.name, task.content)):
            output = await _run(await asyncio.to_thread(pickle.dumps, task))
        line, end, content = output.partition(b"\n")
        if not end:
            # A limit ended it: by a signal, or by PDFium, which ends its process where it has no memory.
            raise BrokenFileError(TOO_MUCH)
        if line.startswith((b'{"refused', b'{"defect')):
            failed = json.loads(line)
            if "defect" in failed:
                raise RuntimeError(f"the process for files raised {failed['defect']}")
            raise REFUSALS[failed["refused"]](failed["message"])
        return line, content

    @asynccontextmanager
    async def _room(self, size_bytes: int) -> AsyncIterator[None]:
        """Wait, in the order of the calls, until the processes have room for a file."""
        async with self._turn:
            while self._running_bytes and self._running_bytes + size_bytes > MAX_AT_ONCE_BYTES:
                self._ended.clear()
                await self._ended.wait()
            self._running_bytes += size_bytes
        try:
            yield
        finally:
            self._running_bytes -= size_bytes
            self._ended.set()


async def _run(task: bytes) -> bytes:
    """The output of a process; empty where it did not end by itself, or without success."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
    )
    try:
        async with asyncio.timeout(MAX_S):
            output, _ = await process.communicate(task)
    except TimeoutError:
        return b""
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return b"" if process.returncode else output


def parsed(name: str, content: bytes, target_lang: str) -> ParsedFile:
    """A file, parsed in this thread; see `FileParser.parse`."""
    file = read(name, content, target_lang)
    return ParsedFile(
        tuple(file.texts),
        tuple(file.words()),
        file.format,
        file.ignore_tags,
        file.splitting_tags,
        file.non_splitting_tags,
        file.left,
        file,
    )


def _from_line(line: bytes) -> ParsedFile:
    fields: dict[str, Any] = json.loads(line)
    return ParsedFile(
        tuple(map(str, fields["texts"])),
        tuple(map(str, fields["words"])),
        Format(fields["format"]),
        frozenset(map(str, fields["ignore_tags"])),
        frozenset(map(str, fields["splitting_tags"])),
        frozenset(map(str, fields["non_splitting_tags"])),
        tuple(map(str, fields["left"])),
    )
