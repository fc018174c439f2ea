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
    """What changes when the files do: a directory stands for what is in it."""
    found: list[tuple[str, int, int]] = []
    for path in paths:
        members = sorted(path.iterdir()) if path.is_dir() else [path]
        for member in members:
            try:
                status = member.stat()
            except OSError:
                continue
            found.append((str(member), status.st_mtime_ns, status.st_ino))
    return tuple(found)


async def on_change(what: str, paths: Sequence[Path], load: Callable[[], None]) -> None:
    """Call `load` after each change, until cancelled; where it refuses, what was loaded before stays."""
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
        else:
            log.info("%s read anew", what)
