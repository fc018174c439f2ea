"""Starting and stopping a cluster in the background, from any other process."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from dragoman_devcluster.errors import LocalClusterError, StartFailedError
from dragoman_devcluster.options import ClusterOptions
from dragoman_devcluster.servers.server import tail
from dragoman_devcluster.state import READY, STOPPING, Supervisor, born, read_supervisor, remove_state

START_TIMEOUT_S = 120.0
STOP_MARGIN_S = 30.0
"""What a supervisor gets beyond its containers' grace before it is killed."""

POLL_S = 0.1


def bring_up(options: ClusterOptions) -> Supervisor:
    """Have a cluster running in the background; one that runs already is left as it is.

    Raises:
        StartFailedError: The cluster did not start; the message has the reason.
    """
    running = read_supervisor(options.dir)
    if running is not None and running.is_alive and running.phase == STOPPING:
        take_down(options.dir)
        running = None
    pid = running.pid if running is not None and running.is_alive else _spawn(options)
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        running = read_supervisor(options.dir)
        if running is not None and running.pid == pid and running.phase == READY:
            return _with_api_of(running, options)
        if born(pid) is None:
            _reap(pid)
            raise StartFailedError(f"the local cluster did not start:\n{tail(_log(options.dir))}")
        time.sleep(POLL_S)
    raise StartFailedError(
        f"the local cluster is not up after {START_TIMEOUT_S:g} s; see {_log(options.dir)}"
    )


def take_down(directory: Path) -> bool:
    """Stop the cluster of a state directory, and remove what it left but for logs and claims.

    Returns:
        Whether one was running.
    """
    running = read_supervisor(directory)
    was_alive = running is not None and running.is_alive
    if running is not None and was_alive:
        running.send(signal.SIGTERM)
        if not _ends(running, ClusterOptions.stop_grace_s + STOP_MARGIN_S):
            running.send(signal.SIGKILL)
            if not _ends(running, STOP_MARGIN_S):
                raise LocalClusterError(f"process {running.pid} does not end, not even when killed")
    remove_state(directory)
    return was_alive


def _with_api_of(running: Supervisor, options: ClusterOptions) -> Supervisor:
    if options.api not in ("auto", running.api):
        raise StartFailedError(
            f"a cluster with the {running.api} API runs in {options.dir} already; stop it first: "
            f"dragoman devcluster down --dir {options.dir}"
        )
    return running


def _spawn(options: ClusterOptions) -> int:
    """Start a supervisor in a session of its own, which outlives this process; its process id."""
    log = _log(options.dir)
    log.parent.mkdir(parents=True, exist_ok=True)
    # A lock or a pipe of this process would be held for as long as the cluster runs.
    inherited = [fd for fd in map(int, os.listdir("/proc/self/fd")) if fd > 2 and _is_inheritable(fd)]
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "dragoman_devcluster", "up", "--foreground", *options.flags()],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
            *((os.POSIX_SPAWN_CLOSE, fd) for fd in inherited),
        ],
        setsid=True,
    )


def _is_inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        # The descriptor of the listing itself, which is closed by now.
        return False


def _reap(pid: int) -> None:
    """Let the kernel forget an ended supervisor, if it was started by this process."""
    with suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _ends(supervisor: Supervisor, timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while supervisor.is_alive:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    _reap(supervisor.pid)
    return True


def _log(directory: Path) -> Path:
    return directory / "logs" / "cluster.log"
