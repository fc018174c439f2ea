"""The guardian: a small process that ends the node's processes if the node dies without doing so.

The node writes ``+PID`` for every process group it starts and ``-PID`` for every one that has ended. When the
pipe closes, because the node is gone, all groups that are left are killed. A parent-death
signal would reach the containers' main processes only, not the workers that they start.

This file runs as a script of its own with nothing but the standard library, so that it costs little.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import IO


class Guardian:
    """The node's end of the pipe. Starts the guardian process at once."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )

    def watch(self, group: int) -> None:
        """Have the process group ended when this process ends."""
        self._send(f"+{group}\n")

    def release(self, group: int) -> None:
        """The process group has ended."""
        self._send(f"-{group}\n")

    def close(self) -> None:
        """End the guardian, and with it the groups that are left."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self._process.wait()

    def _send(self, command: str) -> None:
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with contextlib.suppress(BrokenPipeError):
                pipe.write(command.encode())
                pipe.flush()


def guard(commands: IO[str]) -> None:
    """Follow the commands until the pipe closes, then kill every group that is left."""
    groups: set[int] = set()
    for line in commands:
        change = groups.add if line[0] == "+" else groups.discard
        change(int(line[1:]))
    for group in groups:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    for ignored in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    guard(sys.stdin)
