"""The process that parses or rebuilds one file: a pickled `Task` on standard input, the result on standard output.

Small files can take any time and memory: archives unpack, and PDFium is native code. So the process has limits that
the kernel enforces, no environment, and a lower priority. Its result is JSON in one line, and the rebuilt file behind
it: a pickle of a process that a file may have taken over could run code in the pod.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_protocols.errors import BrokenFileError, GenerationError, RequestError, UnsupportedFileError
from dragoman_service.files.kinds import read

CPU_S = 30
MEMORY_BYTES = 512 * 1024 * 1024
"""Of the address space, of which Python and the reader take 50 to 150 MB."""
NICENESS = 15
"""Below the process for long texts, whose clients wait."""

TOO_MUCH = f"the file cannot be read within {CPU_S} s and {MEMORY_BYTES >> 20} MiB of memory; split it, or save it anew"

REFUSALS: Mapping[str, type[RequestError]] = {
    each.code: each for each in (BrokenFileError, UnsupportedFileError, GenerationError)
}
"""Errors that a reader raises, by their codes."""


@dataclass(frozen=True)
class Task:
    """A file to parse or to rebuild.

    Args:
        translations: Of its texts, to rebuild it; None: it is parsed.
    """

    name: str
    content: bytes
    target_lang: str
    translations: tuple[str, ...] | None = None


def limit() -> None:
    """Bound what this process may use."""
    os.nice(NICENESS)
    for kind, most in (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        resource.setrlimit(kind, (most, most))


def result(task: Task) -> tuple[dict[str, Any], bytes]:
    """The first line of the output, and what follows: the file, where it was rebuilt.

    The line is `{"refused": code, "message"}`, `{"defect": traceback}`, or of a parsed file the fields of
    `FileDocument` and its `words`.
    """
    try:
        file = read(task.name, task.content, task.target_lang)
        if task.translations is not None:
            return {}, file.rebuild(task.translations)
        return {
            "texts": file.texts,
            "words": file.words(),
            "format": file.format,
            "ignore_tags": list(file.ignore_tags),
            "splitting_tags": list(file.splitting_tags),
            "non_splitting_tags": list(file.non_splitting_tags),
            "left": file.left,
        }, b""
    except MemoryError:
        return {"refused": BrokenFileError.code, "message": TOO_MUCH}, b""
    except tuple(REFUSALS.values()) as error:
        return {"refused": error.code, "message": str(error)}, b""
    except Exception:
        return {"defect": traceback.format_exc()}, b""


def main() -> None:
    """Do one task."""
    task = pickle.load(sys.stdin.buffer)
    limit()
    line, content = result(task)
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
    sys.stdout.buffer.write(content)


if __name__ == "__main__":
    main()
