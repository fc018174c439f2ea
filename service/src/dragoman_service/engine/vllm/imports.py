"""The import of vLLM: without packages that the pod does not use, and with the time of each part.

vLLM and transformers import some large packages where they are installed, and do without them where they are not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

UNUSED = frozenset(("pandas", "pyarrow", "scipy", "sklearn"))
"""They take a sixth of the import of vLLM 0.32: 1.6 of 9.5 s of CPU time."""

NAMED = 5
"""Packages in the log."""


class Finder(PathFinder):
    """Python's finder of modules on the path, which finds no hidden package.

    Attributes:
        seconds: By top-level package, the time of its import without that of others that it was the first to import.
    """

    def __init__(self, hidden: frozenset[str]) -> None:
        self._hidden = hidden
        self._inner_s = [0.0]
        self.seconds: dict[str, float] = {}

    def find_spec(  # type: ignore[override]
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """As `importlib.abc.MetaPathFinder.find_spec`."""
        if path is not None:
            return PathFinder.find_spec(name, path, target)
        if name in self._hidden:
            return None
        spec = PathFinder.find_spec(name, path, target)
        loader: Any = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "__dict__"):
            loader.exec_module = self._timed(name, loader.exec_module)
        return spec

    def _timed(self, name: str, execute: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
        def timed(module: ModuleType) -> None:
            began_s = time.monotonic()
            self._inner_s.append(0.0)
            try:
                execute(module)
            finally:
                took_s, inner_s = time.monotonic() - began_s, self._inner_s.pop()
                self._inner_s[-1] += took_s
                self.seconds[name] = took_s - inner_s

        return timed

    def slowest(self) -> str:
        """The packages that took longest, with their seconds."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in ordered[:NAMED])


def install(*, hides_unused: bool) -> Finder:
    """Put a finder in the place of Python's own, for the rest of this process and its forks.

    Args:
        hides_unused: Whether `UNUSED` cannot be imported from now on.
    """
    finder = Finder(UNUSED if hides_unused else frozenset())
    position = next(
        (
            number
            for number, each in enumerate(sys.meta_path)
            if each is PathFinder or isinstance(each, Finder)
        ),
        len(sys.meta_path),
    )
    sys.meta_path[position : position + 1] = [finder]
    return finder
