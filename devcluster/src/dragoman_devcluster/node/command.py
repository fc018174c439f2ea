"""What a container's command line is on this machine, with its paths: processes share one file system."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dragoman_devcluster.errors import PodRefusedError
from dragoman_kube.objects import Manifest

_REFERENCE = re.compile(r"\$(?:\(([^)]*)\)|[\s\S])")

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "dragoman": (sys.executable, "-m", "dragoman"),
    "python": (sys.executable,),
    "python3": (sys.executable,),
}
"""Programs that are taken from the running Python, not from PATH."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by the variable, as a kubelet does.

    ``$$`` is a dollar sign. An unknown name stays with all that its brackets hold, and so does a dollar sign before
    anything else.

    Source: https://pkg.go.dev/k8s.io/kubernetes/third_party/forked/golang/expansion
    """

    def replace(match: re.Match[str]) -> str:
        name: str | None = match.group(1)
        if name is not None:
            return variables.get(name, match.group(0))
        return "$" if match.group(0) == "$$" else match.group(0)

    return _REFERENCE.sub(replace, text)


def command_line(
    container: Manifest, variables: Mapping[str, str], rewrite: Callable[[str], str]
) -> list[str]:
    """The program and its arguments, as this machine understands them.

    `rewrite` turns a path in the container into one of this machine. The program of `PROGRAMS` is one already, even
    where it lies below what a mount calls, say, /tmp.

    Raises:
        PodRefusedError: The container relies on its image's entrypoint.
    """
    command = [expand(word, variables) for word in container.get("command") or ()]
    if not command:
        raise PodRefusedError(
            f"container {container['name']!r} has no command: the local node runs processes, not images, so "
            "the image's entrypoint is not known here; write it as `command`"
        )
    arguments = [expand(word, variables) for word in container.get("args") or ()]
    first, *rest = (rewrite(word) for word in (*command, *arguments))
    return [*program(first), *rest]


def program(name: str) -> tuple[str, ...]:
    """The words that start a program: those of `PROGRAMS`, or the name itself."""
    return PROGRAMS.get(name, (name,))


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
