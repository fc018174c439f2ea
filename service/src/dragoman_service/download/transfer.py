"""Downloads files into a directory: in parallel, resumed, verified, then renamed."""

from __future__ import annotations

import io
import logging
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dragoman_service.download.checksums import Checksum, checksum_of
from dragoman_service.download.errors import ChecksumError, NoSpaceError, StoppedError

log = logging.getLogger(__name__)

PARALLEL_FILES = 8
"""Stores give one connection about 100 MB/s."""
PARTIAL = ".part"
"""Ending of a file that is not complete. Its name is also its content's, so that another content never continues it."""
RATE_S = 10.0
"""Time over which the rate is measured."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a store.

    Args:
        name: Path relative to the model, with ``/``.
        size: Bytes.
        checksum: None if the store lists none; then only the size is verified.
    """

    name: str
    size: int
    checksum: Checksum | None = None


@dataclass(frozen=True)
class Progress:
    """Progress of a download."""

    done_bytes: int = 0
    total_bytes: int = 0
    bytes_per_s: float = 0.0
    waiting: bool = False
    """For another process that downloads the same model into the same volume."""
    silent_s: float = 0.0
    """Seconds since the store last sent anything; 0 while nothing is requested from it."""

    @property
    def ratio(self) -> float | None:
        """0 to 1; None before the size is known."""
        return min(1.0, self.done_bytes / self.total_bytes) if self.total_bytes else None


class Meter:
    """Counts the bytes of a download, for any number of threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._received = 0
        self._resumed = 0
        self._recent: deque[tuple[float, int]] = deque()
        self._requests = 0
        self._received_s = clock()
        self.total_bytes = 0
        self.waiting = False

    @property
    def received_bytes(self) -> int:
        """Bytes that this process has received."""
        return self._received

    def resume(self, count: int) -> None:
        """Count bytes that an earlier process received."""
        with self._lock:
            self._resumed += count

    def receive(self, count: int) -> None:
        """Count bytes that were written; 0 for a response without content."""
        with self._lock:
            self._received += count
            self._received_s = self._clock()

    @contextmanager
    def requesting(self) -> Iterator[None]:
        """Within the context a response is outstanding: libraries retry for minutes and report nothing meanwhile."""
        with self._lock:
            self._requests += 1
            self._received_s = self._clock()
        try:
            yield
        finally:
            with self._lock:
                self._requests -= 1

    def read(self) -> Progress:
        """The progress, with the rate since the reads of the last `RATE_S`."""
        now = self._clock()
        with self._lock:
            self._recent.append((now, self._received))
            while self._recent[0][0] < now - RATE_S:
                self._recent.popleft()
            since, before = self._recent[0]
            rate = (self._received - before) / (now - since) if now > since else 0.0
            silent_s = now - self._received_s if self._requests else 0.0
            return Progress(
                self._resumed + self._received, self.total_bytes, rate, self.waiting, max(0.0, silent_s)
            )


Receive = Callable[[RemoteFile, io.RawIOBase, int], None]
"""Append a file's bytes from an offset on; what is open is positioned there."""


class _Output(io.FileIO):
    """A file that counts what is written, and refuses to go on once another file of the download has failed."""

    def __init__(self, path: Path, offset: int, meter: Meter, stop: threading.Event) -> None:
        super().__init__(path, "r+b" if offset else "wb")
        self._meter, self._stop = meter, stop
        self.seek(offset)

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        """Write all of `data`."""
        view = memoryview(data)
        while view:
            if self._stop.is_set():
                raise StoppedError
            written = super().write(view)
            self._meter.receive(written)
            view = view[written:]
        return len(data)


def download(
    files: Sequence[tuple[RemoteFile, Path]],
    receive: Receive,
    meter: Meter,
    *,
    partial: str = PARTIAL,
) -> None:
    """Download files to their paths; files that exist are not changed.

    A file exists at its path only once it is complete, verified and on disk. Until
    then its name ends with `partial`.

    Raises:
        ChecksumError: A file is not the one that the store lists; what was received of it is deleted.
        NoSpaceError: The files do not fit; nothing was received.
        Exception: Any error of `receive`; what was received is kept for the next attempt.
    """
    missing = [(file, path) for file, path in files if not path.exists()]
    if not missing:
        return
    for _, path in missing:
        path.parent.mkdir(parents=True, exist_ok=True)
    parts = {path: path.with_name(path.name + partial) for _, path in missing}
    offsets = {path: _received(file, parts[path]) for file, path in missing}
    meter.resume(sum(offsets.values()))
    _require_space(missing[0][1].parent, sum(file.size for file, _ in missing) - sum(offsets.values()))
    stop = threading.Event()
    pool = ThreadPoolExecutor(PARALLEL_FILES, thread_name_prefix="download")
    try:
        running = [
            pool.submit(_complete, file, path, parts[path], offsets[path], receive, meter, stop)
            for file, path in missing
        ]
        done, _ = wait(running, return_when=FIRST_EXCEPTION)
        failed = [error for each in done if (error := each.exception())]
        for error in sorted(failed, key=lambda error: isinstance(error, StoppedError)):
            raise error
    finally:
        stop.set()
        # Not waited for: a receiver may be in a read that takes its whole timeout.
        pool.shutdown(wait=False, cancel_futures=True)


def verify(file: RemoteFile, path: Path) -> None:
    """Compare a file with what the store lists.

    Raises:
        ChecksumError: It differs.
    """
    size = path.stat().st_size
    if size != file.size:
        raise ChecksumError(
            f"{file.name} has {size} bytes and the store lists {file.size}; it is downloaded again at the next start"
        )
    if file.checksum is None:
        log.info(
            "%s: only its size is compared, the store has no checksum of the whole file that is known here",
            file.name,
        )
        return
    found = checksum_of(path, file.checksum.algorithm)
    if found != file.checksum:
        raise ChecksumError(
            f"{file.name} has the {found.algorithm} {found.value} and the store lists {file.checksum.value}; it is "
            f"downloaded again at the next start: if this repeats, the store or a mirror has a wrong file"
        )
    log.info("%s: its %s is the store's", file.name, found.algorithm)


def own_partial() -> str:
    """Suffix of the partial files of this process; the same after a restart of its container."""
    return f".{socket.gethostname()}-{os.getpid()}{PARTIAL}"


def _received(file: RemoteFile, part: Path) -> int:
    """Bytes of a file that an earlier process received."""
    size = part.stat().st_size if part.exists() else 0
    if size > file.size:
        part.unlink()
        return 0
    return size


def _complete(
    file: RemoteFile,
    path: Path,
    part: Path,
    offset: int,
    receive: Receive,
    meter: Meter,
    stop: threading.Event,
) -> None:
    with _Output(part, offset, meter, stop) as output:
        if offset < file.size:
            with meter.requesting():
                receive(file, output, offset)
        os.fsync(output.fileno())
    try:
        verify(file, part)
    except ChecksumError:
        part.unlink()
        raise
    part.replace(path)


def _require_space(directory: Path, needed: int) -> None:
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise NoSpaceError(
            f"no space is left for the model: {needed / 1e9:.2f} GB are missing and {free / 1e9:.2f} GB are free; give "
            "the cache volume more room"
        )
