"""Files that are reloaded when they change: keys, certificates, static deployments, glossaries; and YAML in them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

log = logging.getLogger(__name__)

POLL_S = 1.0
"""A mounted Secret reaches a pod within a minute; inotify does not see the swapped symlink of every mount."""

MAX_DEPTH = 64
"""libyaml's composer is recursive and crashes the process at about 20,000 levels."""

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, if PyYAML was built with it, takes a tenth of the time."""

Stamp = tuple[tuple[str, int, int], ...]


class LiveFiles:
    """Files whose last valid content stays in use while they cannot be read.

    Args:
        name: Name in the log.
        paths: Files, or directories of files.
        errors: Exceptions of `load` whose message is the reason; any other is logged with its traceback.
        in_thread: Whether to load in a thread, because it takes long.
        on_reload: Called after each change with whether its content is in use.

    Attributes:
        problem: Why the current files cannot be used; empty if they are in use.
    """

    def __init__(
        self,
        name: str,
        paths: Sequence[Path],
        load: Callable[[], None],
        errors: tuple[type[Exception], ...],
        *,
        in_thread: bool = False,
        on_reload: Callable[[bool], object] = lambda _: None,
    ) -> None:
        self._name, self._paths, self._load, self._errors = name, paths, load, errors
        self._in_thread = in_thread
        self._on_reload = on_reload
        self._seen = stamp(paths)
        self._checking = False
        self.problem = ""

    async def watch(self) -> None:
        """Check for changes until cancelled."""
        while True:
            await asyncio.sleep(POLL_S)
            await self.check()

    async def check(self) -> None:
        """Reload the files if they changed."""
        now = stamp(self._paths)
        if self._checking or now == self._seen:
            return
        self._seen, self._checking = now, True
        try:
            if self._in_thread:
                await asyncio.to_thread(self._load)
            else:
                self._load()
        except self._errors as error:
            self.problem = reason(error)
            log.error("%s: reload failed, the previous content stays in use: %s", self._name, self.problem)
        except Exception as error:
            # No content of a file may end the process.
            self.problem = repr(error)
            log.exception("%s: reload failed, the previous content stays in use", self._name)
        else:
            self.problem = ""
            log.info("%s reloaded", self._name)
        finally:
            self._checking = False
        self._on_reload(not self.problem)


def stamp(paths: Sequence[Path]) -> Stamp:
    """A value that changes with content and permissions of the files, and of the files in directories."""
    found: list[tuple[str, int, int]] = []
    for path in paths:
        for member in _members(path):
            try:
                status = member.stat()
            except OSError:
                continue
            found.append((str(member), status.st_ctime_ns, status.st_ino))
    return tuple(found)


def reason(error: Exception) -> str:
    """Text of an exception, without the path, which the caller names."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _members(path: Path) -> list[Path]:
    try:
        return [path, *sorted(path.iterdir())]
    except OSError:
        return [path]  # A file, or absent.


def read_yaml(text: str) -> Any:
    """The value of a YAML text, which any text gives unless it is a `ValueError`; None for an empty one.

    Raises:
        ValueError: It is not YAML, is nested more than `MAX_DEPTH` deep, or has an invalid value. The message has the
            line if it is known.
    """
    try:
        _check_depth(text)
        return yaml.load(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"no YAML{f', line {mark.line + 1}' if mark else ''}") from None
    except (ArithmeticError, AttributeError, LookupError, RecursionError, ValueError) as error:
        # Errors of PyYAML's constructors, such as for `!!bool maybe` and `!!timestamp x`.
        raise ValueError(f"no YAML that can be read: {error}") from None


def _check_depth(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
