"""The archive: a signed manifest, then the files' contents one after the other.

The manifest is one line of JSON. It is signed with the deployment's secret, together with the key of what it is for,
and has each file's SHA-256: nothing is written that the signature does not cover. There are regular files only, whose
paths are checked one by one, so that no archive can write outside the cache.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SHARED = (
    "deep_gemm",
    "flashinfer",
    "inductor",
    "modelinfos",
    "startup_plan",
    "torch_compile_cache",
    "triton",
)
"""Directories of vLLM's cache that are shared: what `environment` of `engine/vllm/process.py` puts there."""

MAX_BYTES = 1 << 30
MAX_FILES = 20_000
MAX_MANIFEST_BYTES = 8 << 20
"""A few hundred files of some 100 MB in all are usual; at 10 Gbit/s a GiB takes a second."""

CHUNK_BYTES = 1 << 20

NAME = re.compile(r"[A-Za-z0-9_.,=+@%~-]{1,255}")
DIGEST = re.compile(r"[0-9a-f]{64}")
TEMPORARY = re.compile(r"\.(tmp|lock|part)\b|\.tmp\.|^tmp")


class RejectedError(Exception):
    """An archive that must not be used; the message has the reason."""


@dataclass(frozen=True)
class Entry:
    """A file: its path relative to the cache, with ``/``, its size in bytes, and its SHA-256 in hex."""

    path: str
    size: int
    sha256: str


def cached_files(root: Path) -> list[tuple[str, os.stat_result]]:
    """Files that can be shared, sorted by path; without links, and without what is still being written."""
    found = []
    for top in SHARED:
        for directory, _, names in os.walk(root / top):
            for name in names:
                file = Path(directory) / name
                path = file.relative_to(root).as_posix()
                if TEMPORARY.search(name) or not is_safe(path):
                    continue
                try:
                    state = file.lstat()
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(state.st_mode):
                    found.append((path, state))
    return sorted(found)


def entries_of(root: Path, paths: list[str]) -> tuple[Entry, ...]:
    """Entries of files, which are read for it."""
    return tuple(_entry(root, path) for path in paths)


def _entry(root: Path, path: str) -> Entry:
    with (root / path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Entry(path, file.tell(), digest)


def manifest_of(key: str, entries: tuple[Entry, ...]) -> bytes:
    """The line that begins an archive."""
    files = [[entry.path, entry.size, entry.sha256] for entry in entries]
    return json.dumps({"key": key, "files": files}, separators=(",", ":")).encode() + b"\n"


def signature(secret: str, purpose: str, content: bytes) -> str:
    """HMAC-SHA256 of content, for one purpose alone."""
    return hmac.new(secret.encode(), purpose.encode() + b"\n" + content, "sha256").hexdigest()


def is_signed(given: str, secret: str, purpose: str, content: bytes) -> bool:
    """Whether this is the signature; compared in constant time."""
    return hmac.compare_digest(given.encode(), signature(secret, purpose, content).encode())


def read_manifest(line: bytes, key: str) -> tuple[Entry, ...]:
    """The entries of a manifest whose signature was verified.

    Raises:
        RejectedError: It is for another key, too large, or names what may not be written.
    """
    try:
        document = json.loads(line)
        found = document["key"]
        entries = tuple(Entry(path, size, sha256) for path, size, sha256 in document["files"])
    except (ValueError, KeyError, TypeError) as error:
        raise RejectedError("its manifest cannot be read") from error
    if found != key:
        raise RejectedError("it is for another model, version, GPU or setting")
    if len(entries) > MAX_FILES:
        raise RejectedError(f"it has over {MAX_FILES} files")
    for entry in entries:
        if not isinstance(entry.path, str) or not is_safe(entry.path):
            raise RejectedError(f"it has a path that is not allowed: {entry.path!r:.200}")
        if type(entry.size) is not int or entry.size < 0 or not DIGEST.fullmatch(str(entry.sha256)):
            raise RejectedError(f"its entry of {entry.path} is not valid")
    if len({entry.path for entry in entries}) != len(entries):
        raise RejectedError("it has a file twice")
    if sum(entry.size for entry in entries) > MAX_BYTES:
        raise RejectedError(f"it has over {MAX_BYTES >> 20} MiB")
    return entries


def is_safe(path: str) -> bool:
    """Whether a path stays within a shared directory."""
    top, *others = path.split("/")
    return (
        top in SHARED
        and 0 < len(others) <= 32
        and len(path) <= 1024
        and all(NAME.fullmatch(name) and name not in (".", "..") for name in others)
    )


def contents(root: Path, entries: tuple[Entry, ...]) -> Iterator[bytes]:
    """The contents of files in turn; ends early where one has become shorter."""
    for entry in entries:
        with (root / entry.path).open("rb") as file:
            left = entry.size
            while left and (part := file.read(min(left, CHUNK_BYTES))):
                left -= len(part)
                yield part
            if left:
                return


def unpack(entries: tuple[Entry, ...], read: Callable[[int], bytes], root: Path) -> None:
    """Write files into a cache: all are written and verified beside it, then each is renamed into its place.

    Args:
        entries: As `read_manifest` returns them.
        read: Returns at most so many bytes of the contents; none at their end.
        root: The cache, which may have files of its own.

    Raises:
        RejectedError: The contents are not those of the manifest.
        OSError: There is no space, or a directory has the name of a file.
    """
    root.mkdir(parents=True, exist_ok=True)
    if sum(entry.size for entry in entries) > shutil.disk_usage(root).free:
        raise RejectedError("there is no space for it")
    with tempfile.TemporaryDirectory(prefix=".incoming-", dir=root) as staged:
        for entry in entries:
            _write(Path(staged) / entry.path, entry, read)
        for entry in entries:
            target = root / entry.path
            target.parent.mkdir(parents=True, exist_ok=True)
            (Path(staged) / entry.path).replace(target)


def _write(target: Path, entry: Entry, read: Callable[[int], bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), entry.size
    with target.open("xb") as file:
        while left:
            part = read(min(left, CHUNK_BYTES))
            if not part:
                raise RejectedError("it ends too early")
            file.write(part)
            digest.update(part)
            left -= len(part)
    if digest.hexdigest() != entry.sha256:
        raise RejectedError(f"{entry.path} is not what the manifest says")
