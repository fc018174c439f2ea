"""Glossaries in a directory, one JSON file each: what one pod, or pods with a common volume, keep them in."""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from dragoman_protocols.errors import GlossaryStoreError, UnknownGlossaryError
from dragoman_protocols.glossaries.store import (
    MAX_GLOSSARIES,
    Change,
    LocalStore,
    canonical_id,
    full,
    in_order,
    unknown,
)
from dragoman_protocols.glossaries.values import Outline, StoredGlossary, owner_in, read, written

log = logging.getLogger(__name__)

SUFFIX = ".json"

PARSED = 16
"""Glossaries that are kept as values, each up to a megabyte: reading one takes up to tens of milliseconds,
which every translation that uses it would pay."""


class DirectoryStore(LocalStore):
    """A `GlossaryStore` over a directory.

    Files are written beside their place and moved into it, so that readers never see a part of one. Pods that
    share the directory see each other's glossaries; of two that change the same at once, the last holds.

    Args:
        directory: Where the files are; made where it is missing.

    Raises:
        GlossaryStoreError: It cannot be made, or written to.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory
        self._changing = asyncio.Lock()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                pass
        except OSError as error:
            raise _failed(f"cannot keep glossaries in {directory}", error) from error

    async def add(self, glossary: StoredGlossary) -> None:
        """See `GlossaryStore.add`."""
        checked = glossary.checked()
        async with self._changing:
            if len(await asyncio.to_thread(self._names)) >= MAX_GLOSSARIES:
                raise full()
            await asyncio.to_thread(self._write, checked)

    async def get(self, glossary_id: str) -> StoredGlossary:
        """See `GlossaryStore.get`."""
        return await asyncio.to_thread(self._read, self._path(glossary_id))

    async def owner(self, glossary_id: str) -> str | None:
        """See `LocalStore.owner`; read from a damaged glossary, too, while its file is a JSON object."""
        return await asyncio.to_thread(_owner, self._path(glossary_id))

    async def all(self) -> Sequence[Outline]:
        """See `GlossaryStore.all`; a file of another program, or a damaged one, is ignored and logged."""
        return await asyncio.to_thread(self._all)

    async def change(self, glossary_id: str, change: Change) -> StoredGlossary:
        """See `GlossaryStore.change`."""
        async with self._changing:
            return await asyncio.to_thread(self._changed, self._path(glossary_id), change)

    async def remove(self, glossary_id: str) -> None:
        """See `GlossaryStore.remove`."""
        path = self._path(glossary_id)
        try:
            await asyncio.to_thread(path.unlink)
        except FileNotFoundError:
            raise unknown() from None
        except OSError as error:
            raise _failed("the glossary could not be removed", error) from error

    def _changed(self, path: Path, change: Change) -> StoredGlossary:
        changed = change(self._read(path)).checked()
        self._write(changed)
        return changed

    def _path(self, glossary_id: str) -> Path:
        return self._directory / (canonical_id(glossary_id) + SUFFIX)

    def _names(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._directory) if name.endswith(SUFFIX)]
        except OSError as error:
            raise _failed("the glossaries could not be listed", error) from error

    def _all(self) -> list[Outline]:
        found = []
        for name in self._names():
            try:
                found.append(self._read(self._directory / name).outline)
            except GlossaryStoreError as error:
                log.warning("ignored %s: %s", name, error)
            except UnknownGlossaryError:
                continue  # removed since it was listed
        return in_order(found)

    def _read(self, path: Path) -> StoredGlossary:
        with _reading(path):
            state = path.stat()
            return _parsed(path, state.st_mtime_ns, state.st_ino)

    def _write(self, glossary: StoredGlossary) -> None:
        path = self._path(glossary.glossary_id)
        try:
            handle, beside = tempfile.mkstemp(dir=self._directory, prefix=".", suffix=".new")
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(written(glossary))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(beside, path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(beside)
                raise
        except OSError as error:
            raise _failed("the glossary could not be kept", error) from error


def _owner(path: Path) -> str | None:
    with _reading(path):
        return owner_in(path.read_bytes())


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Errors of reading a glossary's file become those of stores."""
    try:
        yield
    except FileNotFoundError:
        raise unknown() from None
    except OSError as error:
        raise _failed("the glossary could not be read", error) from error
    except ValueError as error:
        raise GlossaryStoreError(f"the file {path.name} is no glossary; restore or remove it") from error


@lru_cache(maxsize=PARSED)
def _parsed(path: Path, mtime_ns: int, inode: int) -> StoredGlossary:
    """A file's glossary; time and inode tell its states apart, for each write makes a new file."""
    del mtime_ns, inode
    return read(path.read_bytes())


def _failed(what: str, error: OSError) -> GlossaryStoreError:
    return GlossaryStoreError(f"{what}: {os.strerror(error.errno or 0)}")
