"""The supervisor of a state directory's cluster: its process and its phase."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = ("logs", "volumes")
"""What is kept when a cluster ends: its logs, and the directories of claims (models are large)."""

STARTING, READY, STOPPING = "starting", "ready", "stopping"


@dataclass(frozen=True)
class Supervisor:
    """The process that runs a cluster.

    `born` tells it from a later process of its id: the kernel's ticks since boot when it was started.
    """

    pid: int
    born: int
    phase: str = STARTING
    api: str = ""
    url: str = ""

    @classmethod
    def here(cls) -> Supervisor:
        """This process."""
        return cls(os.getpid(), born(os.getpid()) or 0)

    @property
    def is_alive(self) -> bool:
        """Whether this very process still runs."""
        return born(self.pid) == self.born

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; nothing happens if it has ended, even if its number is another's by now."""
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(self.pid)
            try:
                # The handle names one process for good, so what is verified now stays true.
                if self.is_alive:
                    signal.pidfd_send_signal(handle, number)
            finally:
                os.close(handle)


def pods_directory(directory: Path) -> Path:
    """Where the pods of a cluster keep what ends with them.

    Not below the state directory: a pod's /tmp lies here, and processes make sockets in it, whose paths may
    have 107 characters. In a container such a path begins with /tmp; here it begins with nearly as little.
    Source: https://man7.org/linux/man-pages/man7/unix.7.html (sun_path)
    """
    digest = hashlib.sha256(str(directory.resolve()).encode()).hexdigest()
    return Path("/tmp") / f"dragoman-{digest[:8]}"


def born(pid: int) -> int | None:
    """When a process was started, in ticks since boot; None if there is none, or only its remains.

    Source: https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html (fields 3 and 22)
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field is the command in parentheses and may hold spaces and parentheses.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else int(fields[19])


def read_supervisor(directory: Path) -> Supervisor | None:
    """The supervisor that last wrote into the state directory, alive or not."""
    try:
        return Supervisor(**json.loads((directory / "cluster.json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_supervisor(directory: Path, supervisor: Supervisor) -> None:
    """Write the supervisor's state atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    draft = directory / "cluster.json.new"
    draft.write_text(json.dumps(asdict(supervisor)))
    draft.replace(directory / "cluster.json")


def remove_state(directory: Path) -> None:
    """Remove what a stopped cluster has left, but for its logs and its claims."""
    for name in ("cluster.json", "cluster.json.new", "kubeconfig", "lock"):
        (directory / name).unlink(missing_ok=True)
    for runtime in (directory / "api", pods_directory(directory)):
        shutil.rmtree(runtime, ignore_errors=True)
    for name in (*KEPT, ""):
        # Directories that hold nothing go too.
        with suppress(OSError):
            (directory / name).rmdir()
