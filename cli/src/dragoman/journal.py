"""The journal of one output file: finished lines survive SIGINT, SIGKILL and power cuts, and are not translated again.

The first line is the hash of input and options, each further one a finished line of the input. The output file itself
is written once, at the end, by an atomic rename.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUFFIX = ".dragoman-part"
VERSION = 1
NEW_SUFFIX = ".dragoman-new"
"""Of the output file before its rename."""


class JournalError(Exception):
    """The journal cannot be used; the message says what to do."""


def journal_of(output: Path) -> Path:
    """Where the journal of an output file is."""
    return output.with_name(output.name + SUFFIX)


def digest_of(content: bytes, options: Mapping[str, Any]) -> str:
    """64 hexadecimal digits: SHA-256 of the input and of what its translation depends on."""
    head = json.dumps({"version": VERSION, **options}, sort_keys=True).encode()
    return hashlib.sha256(head + b"\n" + content).hexdigest()


class Journal:
    """An open journal, locked against other processes. `done` has the finished lines by their number, from 0.

    Args:
        output: The file that it is for.
        digest: See `digest_of`.
        anew: Discard what an earlier run left.

    Raises:
        JournalError: It is of another input or other options, or another process has it.
        OSError: It cannot be read or written.
    """

    def __init__(self, output: Path, digest: str, *, anew: bool = False) -> None:
        self._output = output
        self.path = journal_of(output)
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if anew:
                self._file.truncate(0)
            self.done = self._read(digest)
        except BlockingIOError:
            self._file.close()
            raise JournalError(f"another process writes {output}") from None
        except BaseException:
            self._file.close()
            raise

    def add(self, finished: Mapping[int, str]) -> None:
        """Keep finished lines; they are on the disk when this returns."""
        self._append(
            b"".join(_line({"line": number, "text": text}) for number, text in sorted(finished.items()))
        )
        self.done.update(finished)

    def finish(self, content: bytes) -> None:
        """Write the output file and delete the journal. An end between the two is repaired by the next run."""
        write_atomically(self._output, content)
        self.path.unlink()
        self.close()

    def close(self) -> None:
        """Release it; what it has stays, and without a finished line nothing does."""
        if not self._file.closed and not self.done:
            # It is still locked: another process has not opened it.
            self.path.unlink(missing_ok=True)
        self._file.close()

    def _read(self, digest: str) -> dict[int, str]:
        self._file.seek(0)
        done: dict[int, str] = {}
        end = 0
        for index, line in enumerate(self._file):
            # A line that a killed process wrote in part ends the journal.
            if not line.endswith(b"\n"):
                break
            try:
                entry = json.loads(line)
                if index == 0:
                    self._check(str(entry["dragoman"]), digest)
                else:
                    done[int(entry["line"])] = str(entry["text"])
            except (ValueError, KeyError, TypeError):
                if index == 0:
                    raise JournalError(f"{self.path} is no journal; delete it, or pass --overwrite") from None
                break
            end += len(line)
        self._file.truncate(end)
        if not end:
            self._append(_line({"dragoman": digest}))
            _sync_directory(self.path.parent)
        return done

    def _check(self, found: str, digest: str) -> None:
        if found != digest:
            raise JournalError(
                f"{self.path} is of another input or of other options; repeat the command that made it, or pass "
                "--overwrite to start anew"
            )

    def _append(self, content: bytes) -> None:
        self._file.write(content)
        self._file.flush()
        os.fsync(self._file.fileno())


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file at once: readers see the former or the new one."""
    new = path.with_name(path.name + NEW_SUFFIX)
    with new.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """A rename is durable once its directory is (fsync(2))."""
    opened = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _line(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"
