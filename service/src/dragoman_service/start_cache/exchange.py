"""Takes the start cache from a ready pod of the deployment, and has this pod's own for the next one.

A start never depends on it: whatever goes wrong is an outcome with a reason, and the engine starts as without.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

from dragoman_contract.http import START_CACHE_PATH, START_CACHE_SIGNATURE
from dragoman_service.start_cache.archive import (
    MAX_BYTES,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    Entry,
    RejectedError,
    cached_files,
    entries_of,
    is_signed,
    manifest_of,
    read_manifest,
    signature,
    unpack,
)

log = logging.getLogger(__name__)

DEADLINE_S = 8.0
"""Of the whole exchange. It runs while vLLM is imported, which takes as long."""
CONNECT_S = 1.0
BUSY_PAUSE_S = 0.25
"""Time between two requests to siblings that serve other pods."""
BUSY, ABSENT = 503, 404

REQUEST, ARCHIVE = "dragoman start cache: request", "dragoman start cache: archive"
"""What signatures are for."""

TAKEN_MARKS = "start-cache"
"""Directory of the cache with an empty file for each key that is there."""


class Outcome(StrEnum):
    """How an exchange ended."""

    OFF = "off"
    """No sibling is configured."""
    PRESENT = "present"
    """The pod's own cache has it."""
    TAKEN = "taken"
    NO_SIBLING = "no_sibling"
    """No pod is ready."""
    MISMATCH = "mismatch"
    """The sibling has another model, version, GPU or setting, or nothing to share."""
    REJECTED = "rejected"
    """Wrong signature, hash, path or size."""
    TIMED_OUT = "timed_out"
    FAILED = "failed"


@dataclass(frozen=True)
class Result:
    """How an exchange ended, in seconds, files and bytes, with a sentence for the log."""

    outcome: Outcome
    detail: str = ""
    seconds: float = 0.0
    files: int = 0
    total_bytes: int = 0


@dataclass(frozen=True)
class Archive:
    """What a pod serves: its signed manifest, and the entries whose contents follow it."""

    manifest: bytes
    signature: str
    entries: tuple[Entry, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of manifest and contents."""
        return len(self.manifest) + sum(entry.size for entry in self.entries)


class StartCache:
    """The start cache of one pod.

    Args:
        url: Of the deployment's Service.
        secret: Of the deployment.
        root: vLLM's cache, in which the shared directories are.
        key: Computes the key, in a thread; None if it cannot be known.
    """

    def __init__(self, url: str, secret: str, root: Path, key: Callable[[], str | None]) -> None:
        self._url = url
        self._secret = secret
        self.root = root
        self._compute_key = key
        self._key: str | None = None
        self._settled = threading.Event()
        self._seen: list[tuple[str, int, int]] = []
        self._archive: Archive | None = None
        self.result = Result(Outcome.OFF)

    def take(self) -> Result:
        """Take the cache, once; raises nothing."""
        started_s = time.monotonic()
        try:
            self._key = self._compute_key()
            result = self._take(started_s + DEADLINE_S)
        except RejectedError as error:
            result = Result(Outcome.REJECTED, str(error))
        except TimeoutError:
            result = Result(Outcome.TIMED_OUT, f"it took over {DEADLINE_S:g} s")
        except (ConnectionError, socket.gaierror) as error:
            result = Result(Outcome.NO_SIBLING, str(error))
        except Exception as error:
            # Never a reason for a start to fail.
            log.debug("start cache", exc_info=error)
            result = Result(Outcome.FAILED, f"{type(error).__name__}: {error}")
        self.result = Result(
            result.outcome,
            result.detail,
            round(time.monotonic() - started_s, 3),
            result.files,
            result.total_bytes,
        )
        self._settled.set()
        return self.result

    def wait(self) -> None:
        """Wait until `take` is done, for its deadline at most and a little more."""
        self._settled.wait(DEADLINE_S + 2 * CONNECT_S)

    def may_have(self, key: str, token: str) -> bool:
        """Whether a request may have the archive of this key."""
        return key == self._key and is_signed(token, self._secret, REQUEST, key.encode())

    def archive(self) -> Archive | None:
        """What to serve; None if there is nothing, or too much. Files are hashed again once they have changed."""
        if self._key is None:
            return None
        found = cached_files(self.root)
        seen = [(path, state.st_size, state.st_mtime_ns) for path, state in found]
        if not seen or len(seen) > MAX_FILES or sum(size for _, size, _ in seen) > MAX_BYTES:
            return None
        if seen != self._seen or self._archive is None:
            entries = entries_of(self.root, [path for path, _, _ in seen])
            manifest = manifest_of(self._key, entries)
            self._archive = Archive(manifest, signature(self._secret, ARCHIVE, manifest), entries)
            self._seen = seen
        return self._archive

    def _take(self, end_s: float) -> Result:
        if self._key is None:
            return Result(Outcome.OFF, "the GPU is not known: nvidia-ml-py is not installed")
        if self._marked(self._key).exists():
            return Result(Outcome.PRESENT)
        target = urlsplit(self._url)
        while True:
            connection = HTTPConnection(target.hostname or "", target.port or 80, timeout=CONNECT_S)
            try:
                connection.connect()
                token = signature(self._secret, REQUEST, self._key.encode())
                headers = {"Authorization": f"Bearer {token}"}
                with _closed_at(connection.sock, end_s):
                    connection.request("GET", START_CACHE_PATH + self._key, headers=headers)
                    response = connection.getresponse()
                    if response.status == 200:
                        return self._receive(response, self._key)
            except HTTPException as error:
                raise ConnectionError(f"no answer: {error!r}") from error
            finally:
                connection.close()
            if response.status == ABSENT:
                return Result(Outcome.MISMATCH, "the sibling has no cache for this pod")
            if response.status != BUSY:
                return Result(Outcome.FAILED, f"the sibling answered {response.status}")
            time.sleep(min(BUSY_PAUSE_S, _left_s(end_s)))

    def _receive(self, response: HTTPResponse, key: str) -> Result:
        line = response.readline(MAX_MANIFEST_BYTES + 1)
        if len(line) > MAX_MANIFEST_BYTES or not line.endswith(b"\n"):
            raise RejectedError("its manifest is too long, or has no end")
        if not is_signed(response.getheader(START_CACHE_SIGNATURE, ""), self._secret, ARCHIVE, line):
            raise RejectedError("its signature is not the deployment's")
        entries = read_manifest(line, key)
        unpack(entries, response.read, self.root)
        self._mark(key)
        return Result(Outcome.TAKEN, "", 0.0, len(entries), sum(entry.size for entry in entries))

    def _marked(self, key: str) -> Path:
        return self.root / TAKEN_MARKS / key

    def _mark(self, key: str) -> None:
        mark = self._marked(key)
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()


@contextmanager
def _closed_at(sock: socket.socket, end_s: float) -> Iterator[None]:
    """Close a connection at `end_s`: a timeout of the socket begins anew with each byte.

    Raises:
        TimeoutError: It was closed.
    """
    sock.settimeout(None)

    def close() -> None:
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(_left_s(end_s), close)
    timer.daemon = True
    timer.start()
    try:
        yield
    except Exception as error:
        if time.monotonic() >= end_s:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s
