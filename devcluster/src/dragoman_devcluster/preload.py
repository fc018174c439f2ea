"""Processes of `dragoman` forked from one that has imported its modules, instead of a new interpreter for each.

An interpreter of its own spends a second of CPU on imports; a forked one spends milliseconds. What an interpreter reads
before its first line (`PYTHON…` variables) is that of the preloaded process, and so are `/proc/PID/cmdline`,
`/proc/PID/environ`, the seed of hashes, and the environment that modules saw when they were imported. All else is as
`python -m dragoman` has it.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from dragoman_devcluster.errors import StartFailedError

START_TIMEOUT_S = 60.0
"""For the imports, and for a fork on a busy machine."""

_FORKED = multiprocessing.get_context("forkserver")


class Forked:
    """A forked process; of `subprocess.Popen` what `Process` uses.

    Args:
        argv: `python -m MODULE` and its arguments.
        env: Its whole environment.
        cwd: Its working directory.
        output: The file to which standard output and standard error are appended.

    Raises:
        StartFailedError: It has no such directory, or ended before it ran the module.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, output: Path) -> None:
        reports, reporting = _FORKED.Pipe(duplex=False)
        self._process = _FORKED.Process(
            target=_run, args=(reporting, list(argv), dict(env), str(cwd), str(output))
        )
        with reports:
            with reporting:
                self._process.start()
            if failure := _report(reports):
                raise StartFailedError(f"cannot start {argv[2]!r}: {failure}")
        assert self._process.pid is not None
        self.pid = self._process.pid

    def end_descriptor(self) -> int:
        """A descriptor, the caller's, that is readable once the process has ended."""
        return os.dup(self._process.sentinel)

    def wait(self) -> int:
        """Wait for the end; the exit status, negative for a signal."""
        self._process.join()
        status = self._process.exitcode
        assert status is not None
        return status


class Preload:
    """The process that has imported a module, and what may be forked from it.

    Args:
        module: What it imports; the working directory is on its path.

    Raises:
        StartFailedError: The module cannot be imported.
    """

    def __init__(self, module: str) -> None:
        _FORKED.set_forkserver_preload([module])
        reports, reporting = _FORKED.Pipe(duplex=False)
        # The standard library ignores a module that is missing.
        checking = _FORKED.Process(target=_check, args=(reporting, module))
        with reports:
            with reporting:
                checking.start()
            failure = _report(reports)
        checking.join()
        if failure:
            raise StartFailedError(f"--preload {module}: {failure}")

    def can_run(self, argv: Sequence[str], env: Mapping[str, str]) -> bool:
        """Whether a fork would do what a new interpreter does: the command is `dragoman`, its Python set up alike."""
        return tuple(argv[:3]) == (sys.executable, "-m", "dragoman") and _python(env) == _python(os.environ)


def _python(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(("PYTHON", "LD_"))}


def _report(reports: Connection) -> str:
    """What the child reports: nothing, or what went wrong."""
    if not reports.poll(START_TIMEOUT_S):
        return f"no process within {START_TIMEOUT_S:g} s"
    try:
        return str(reports.recv())
    except EOFError:
        return "the process ended before it began"


def _check(reporting: Connection, module: str) -> None:
    try:
        __import__(module)
    except ImportError as error:
        reporting.send(str(error))
    else:
        reporting.send("")


def _run(reporting: Connection, argv: list[str], env: dict[str, str], cwd: str, output: str) -> None:
    """In the forked process."""
    os.setsid()
    try:
        os.chdir(cwd)
    except OSError as error:
        reporting.send(str(error))
        return
    written = os.open(output, os.O_WRONLY | os.O_APPEND)
    os.dup2(written, 1)
    os.dup2(written, 2)
    os.close(written)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    tempfile.tempdir = None  # To be read from the environment again.
    sys.argv = list(argv[2:])
    sys.path[0] = cwd
    reporting.send("")
    reporting.close()
    try:
        runpy.run_module(argv[2], run_name="__main__", alter_sys=True)
    finally:
        # Multiprocessing ends its children by `os._exit`, which would leave temporary files behind.
        atexit._run_exitfuncs()
