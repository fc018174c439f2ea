"""Checksums that stores publish for their files."""

from __future__ import annotations

import hashlib
import io
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, Protocol

Algorithm = Literal["sha256", "sha1", "md5", "crc32", "git-sha1"]

READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Checksum:
    """What a store says about the content of a file; `value` is lower-case hex.

    git-sha1 is the id of git's blob object, by which the hub names files that are not in LFS. With `parts`, the bytes
    of each part of a file, it is the checksum of the checksums of the parts, as S3 has it of an object that was
    uploaded in parts.
    """

    algorithm: Algorithm
    value: str
    parts: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """For people."""
        return f"{self.algorithm} of {len(self.parts)} parts" if self.parts else self.algorithm


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


def checksum_of(path: Path, algorithm: Algorithm, parts: tuple[int, ...] = ()) -> Checksum:
    """The checksum of a file on disk; see `Checksum` for `parts`.

    Raises:
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        if not parts:
            return Checksum(algorithm, _digest(file, algorithm, path.stat().st_size))
        digests = b"".join(bytes.fromhex(_digest(file, algorithm, size)) for size in parts)
    return Checksum(algorithm, _digest(io.BytesIO(digests), algorithm, len(digests)), parts)


def _digest(file: BinaryIO, algorithm: Algorithm, size: int) -> str:
    """Of the next `size` bytes."""
    found = _HASHES[algorithm](size)
    left = size
    while left and (data := file.read(min(READ_BYTES, left))):
        found.update(data)
        left -= len(data)
    return found.hexdigest()
