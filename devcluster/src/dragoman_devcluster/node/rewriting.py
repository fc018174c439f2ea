"""Paths inside a container, rewritten to paths of this machine: processes share one file system."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CHECKOUT_PATH = "/opt/dragoman"
"""Where images carry the checkout's examples."""

_FILE_URI = "file://"


@dataclass(frozen=True)
class PathMap:
    """Where a container's paths are.

    Args:
        mounts: Directory of each mountPath.
        files: File of each path that stands for one file, such as terminationMessagePath.
        checkout: Directory that stands for /opt/dragoman.
    """

    mounts: Mapping[str, Path]
    files: Mapping[str, Path]
    checkout: Path

    def rewrite(self, value: str) -> str:
        """A command line argument or variable as this machine understands it.

        Rewritten are values that are one of `files`, that begin with a mountPath or with /opt/dragoman, the
        same inside a ``file://`` URI, and the value of a ``--flag=value``. Anything else stays.
        """
        if value.startswith(_FILE_URI):
            return _FILE_URI + self.rewrite(value.removeprefix(_FILE_URI))
        flag, equals, rest = value.partition("=")
        if equals and flag.startswith("--"):
            return f"{flag}={self.rewrite(rest)}"
        if value in self.files:
            return str(self.files[value])
        places = {CHECKOUT_PATH: self.checkout, **self.mounts}
        for place in sorted(places, key=len, reverse=True):
            inside = value.removeprefix(place.rstrip("/"))
            if inside != value and (not inside or inside.startswith("/")):
                return str(places[place]) + inside
        return value
