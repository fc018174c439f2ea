"""What a container's command line is on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping

from dragoman_devcluster.errors import PodRefusedError
from dragoman_kube.objects import Manifest

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.\-][A-Za-z0-9_.\-]*)\)")

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "dragoman": (sys.executable, "-m", "dragoman"),
    "python": (sys.executable,),
    "python3": (sys.executable,),
}
"""Programs that are taken from the running Python, not from PATH."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` by the variable; ``$$`` is a dollar sign, unknown names stay as they are.

    Source: https://kubernetes.io/docs/tasks/inject-data-application/define-interdependent-environment-variables/
    """

    def replace(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        return variables.get(name, match.group(0))

    return _REFERENCE.sub(replace, text)


def command_line(
    container: Manifest, variables: Mapping[str, str], rewrite: Callable[[str], str]
) -> list[str]:
    """The program and its arguments, as this machine understands them.

    Args:
        container: The container of the pod's spec.
        variables: Its environment, for ``$(NAME)``.
        rewrite: Turns a path in the container into one of this machine. The program of `PROGRAMS` is one
            already, even where it lies below what a mount calls, say, /tmp.

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
