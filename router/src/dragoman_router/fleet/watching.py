"""Files that change under a running router: keys, certificates, static deployments."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman_router.errors import SettingsError

log = logging.getLogger(__name__)

LOOK_S = 1.0
"""A mounted Secret reaches a pod within a minute; inotify does not see the swapped symlink of every mount."""

Stamp = tuple[tuple[str, int, int], ...]


def stamp(paths: Sequence[Path]) -> Stamp:
    """What changes when the files do, or who may read them: a directory stands for what is in it."""
    found: list[tuple[str, int, int]] = []
    for path in paths:
        for member in _members(path):
            try:
                status = member.stat()
            except OSError:
                continue
            found.append((str(member), status.st_ctime_ns, status.st_ino))
    return tuple(found)


def _members(path: Path) -> list[Path]:
    try:
        return [path, *sorted(path.iterdir())]
    except OSError:
        return [path]  # A file, or gone.


async def on_change(
    what: str, paths: Sequence[Path], load: Callable[[], None], on_stale: Callable[[bool], None]
) -> None:
    """Call `load` after each change, until cancelled; where it fails, what was loaded before stays.

    Args:
        what: Name for the log.
        paths: Files, or directories of files.
        load: Reads them.
        on_stale: Called after each change: whether what was loaded before stays in force.
    """
    seen = stamp(paths)
    while True:
        await asyncio.sleep(LOOK_S)
        now = stamp(paths)
        if now == seen:
            continue
        seen = now
        try:
            load()
        except SettingsError as error:
            log.error("%s changed and cannot be used, what was there before stays: %s", what, error)
            on_stale(True)
        except Exception:
            # No content of a file may end a router that runs; what `load` does not foresee is a defect of its own.
            log.exception("%s changed and cannot be used, what was there before stays", what)
            on_stale(True)
        else:
            log.info("%s read anew", what)
            on_stale(False)
