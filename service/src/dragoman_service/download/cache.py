"""The folder of one model in the cache: one process at a time fills it, and records which files it has verified."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from dragoman_service.download.transfer import Meter, own_partial

log = logging.getLogger(__name__)

LOCK = "dragoman.lock"
RECORD = "dragoman.json"
LOCK_POLL_S = 0.5
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP})
"""What flock(2) answers where a volume has no locks."""


@contextmanager
def exclusive(folder: Path, meter: Meter) -> Iterator[bool]:
    """Hold the folder's lock; wait for another process, also of another pod that mounts the volume.

    The kernel releases it when its process ends, however it ends. Where a volume has no locks, processes download side
    by side, into partial files of their own; each file still appears complete or not at all.

    Yields:
        Whether the lock is held; False where there are none.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # A soft lock is a file that stays when its process is killed: other hosts would wait for it for ever.
    lock = FileLock(folder / LOCK, poll_interval=LOCK_POLL_S, fallback_to_soft=False)
    held = True
    try:
        lock.acquire(timeout=0)
    except Timeout:
        meter.waiting = True
        lock.acquire()
        meter.waiting = False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        log.warning("the volume of %s has no locks, processes download side by side: %s", folder, error)
        held = False
    try:
        yield held
    finally:
        lock.release()


class Record:
    """Files that were verified, with their size and time of change: a file that has both is not read again.

    Args:
        folder: The model's folder, whose lock is held.

    Attributes:
        directory: That of the model that was complete last.
        listed: The files of the store's model, by directory: also of one that is not complete.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / RECORD
        try:
            found: Any = json.loads(self._path.read_text(encoding="utf-8"))
            self._verified: dict[str, list[int]] = dict(found["verified"])
            self.directory: str | None = found["directory"]
            self.listed: dict[str, list[str]] = dict(found["listed"])
        except (OSError, ValueError, KeyError, TypeError):
            self._verified, self.directory, self.listed = {}, None, {}

    def has(self, path: Path) -> bool:
        """Whether the file has not changed since it was verified."""
        return self._verified.get(self._name(path)) == _stat(path)

    def add(self, path: Path) -> None:
        """The file was verified."""
        self._verified[self._name(path)] = _stat(path)

    def write(self, directory: str | None) -> None:
        """Write the record; `directory` is that of the complete model, if there is one."""
        temporary = self._path.with_name(RECORD + own_partial())
        content = {"directory": directory, "verified": self._verified, "listed": self.listed}
        temporary.write_text(json.dumps(content), encoding="utf-8")
        temporary.replace(self._path)
        self.directory = directory

    def _name(self, path: Path) -> str:
        return str(path.relative_to(self._folder))


def _stat(path: Path) -> list[int]:
    found = path.stat()
    return [found.st_size, found.st_mtime_ns]
