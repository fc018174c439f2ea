"""Checksums that stores publish for their files."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

Algorithm = Literal["sha256", "sha1", "md5", "crc32", "git-sha1"]

READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checksum:
    """The checksum that a store lists for a file; `value` is lower-case hex.

    git-sha1 is the id of git's blob object, by which the hub names files that are not in LFS.
    """

    algorithm: Algorithm
    value: str


class _Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def _git(size: int) -> _Hash:
    # Source: https://git-scm.com/book/en/v2/Git-Internals-Git-Objects#_object_storage
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)


_HASHES: dict[Algorithm, Callable[[int], _Hash]] = {
    "sha256": lambda _: hashlib.sha256(),
    "sha1": lambda _: hashlib.sha1(usedforsecurity=False),
    "md5": lambda _: hashlib.md5(usedforsecurity=False),
    "crc32": lambda _: _Crc32(),
    "git-sha1": _git,
}


def checksum_of(path: Path, algorithm: Algorithm) -> Checksum:
    """The checksum of a file on disk.

    Raises:
        OSError: It cannot be read.
    """
    found = _HASHES[algorithm](path.stat().st_size)
    with path.open("rb") as file:
        while data := file.read(READ_BYTES):
            found.update(data)
    return Checksum(algorithm, found.hexdigest())
