"""The start cache of one pod: copied from a ready pod of the deployment, and served to the next one.

A start never depends on it: each failure is an outcome with a reason, and the engine starts without the files.
"""

from __future__ import annotations

import logging
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from dragoman_service.start_cache.archive import (
    MAX_BYTES,
    MAX_FILES,
    Entry,
    cached_files,
    entries_of,
    is_signed,
    manifest_of,
    signature,
)
from dragoman_service.start_cache.taking import (
    ARCHIVE,
    CONNECT_S,
    REQUEST,
    Outcome,
    Result,
    Sibling,
    take_in_process,
)

log = logging.getLogger(__name__)

LIMIT_S = 8.0
"""Maximum time to take it: about that of the import of vLLM, which runs meanwhile."""


@dataclass(frozen=True)
class Archive:
    """The archive that a pod serves: a signed manifest, and the entries whose contents follow it."""

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
            result = self._take()
        except subprocess.TimeoutExpired as error:
            result = Result(Outcome.TIMED_OUT, f"it took over {error.timeout:g} s")
        except Exception as error:
            # Never a reason for a start to fail.
            log.debug("start cache", exc_info=error)
            result = Result(Outcome.FAILED, f"{type(error).__name__}: {error}")
        self.result = replace(result, seconds=round(time.monotonic() - started_s, 3))
        self._settled.set()
        return self.result

    def wait(self) -> None:
        """Wait until `take` is done, for its limit at most and a little more."""
        self._settled.wait(LIMIT_S + 3 * CONNECT_S)

    def may_have(self, key: str, token: str) -> bool:
        """Whether a request is allowed to read the archive of this key."""
        return key == self._key and is_signed(token, self._secret, REQUEST, key.encode())

    def archive(self) -> Archive | None:
        """The archive; None if it is empty or too large. Changed files are hashed again."""
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

    def _take(self) -> Result:
        self._key = self._compute_key()
        if self._key is None:
            return Result(Outcome.OFF, "the GPU is not known: nvidia-ml-py is not installed")
        return take_in_process(Sibling(self._url, self._secret, str(self.root), self._key, LIMIT_S))
