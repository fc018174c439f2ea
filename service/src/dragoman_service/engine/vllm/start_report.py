"""What runs inside vLLM's own processes: their start is reported to the pod, and they end with it.

vLLM loads models in processes that it spawns. Each of them configures its logging from the file named by
`VLLM_LOGGING_CONFIG_PATH` (all releases since 0.5), and that file names the handler below: so the pod learns
the phase of the load, and the error in which it ended, which vLLM itself passes on as "see root cause above".
"""

from __future__ import annotations

import copy
import json
import logging
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from dragoman_service.engine.protocol import Phase

PHASE_MARKS = (
    ("Resolved architecture", Phase.RESOLVING),
    ("Initializing a V1 LLM engine", Phase.LOADING),
    ("Starting to load model", Phase.LOADING),
    ("for vLLM's torch.compile", Phase.COMPILING),
    ("Warming up", Phase.WARMING_UP),
    ("KV cache size", Phase.WARMING_UP),
    ("Available KV cache memory", Phase.WARMING_UP),
    ("init engine (profile", Phase.WARMING_UP),
)
"""Words that vLLM 0.32 logs, and the phase that they open. Where a release changes them, the phase
only comes later or not at all."""

FAILURE_MARKS = ("EngineCore failed to start", "EngineCore encountered a fatal error", "WorkerProc")
"""How vLLM's processes log that they end; other exceptions in their logs are transient."""

MAX_REPORTED_BYTES = 64 * 1024
"""A start takes a few lines; an engine that logs errors for months must not fill the disk through this."""

ORPHAN_GRACE_S = 5
"""Time between SIGTERM and SIGKILL for a process whose pod is gone."""


@dataclass(frozen=True)
class Failure:
    """An exception as another process reports it: outermost cause first, as (class, message)."""

    chain: tuple[tuple[str, str], ...]


def failure(error: BaseException) -> Failure:
    """An exception and what caused it."""
    chain: list[tuple[str, str]] = []
    at: BaseException | None = error
    while at is not None and len(chain) < 10:
        chain.append((type(at).__name__, str(at)))
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return Failure(tuple(chain))


class StartReport(logging.Handler):
    """Appends phases and errors to a file, a JSON document a line.

    Making one also ties this process to the pod, where it is a child of it.
    """

    def __init__(self, path: str) -> None:
        super().__init__(logging.INFO)
        self._path = Path(path)
        end_with_parent()

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record of the start; ignore all others."""
        message = record.getMessage()
        if record.exc_info and record.exc_info[1] and message.startswith(FAILURE_MARKS):
            self._append({"failure": failure(record.exc_info[1]).chain})
            return
        for mark, phase in PHASE_MARKS:
            if mark in message:
                self._append({"phase": phase})
                return

    def _append(self, line: dict[str, Any]) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                if file.tell() < MAX_REPORTED_BYTES:
                    file.write(json.dumps(line) + "\n")
        except OSError:
            # The pod has ended and taken the file with it.
            return


class Console(logging.StreamHandler[Any]):
    """Standard error, without the tracebacks of a failed start: the pod logs the reason."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        if "failed to start" in record.getMessage() and self.level > logging.DEBUG:
            record = copy.copy(record)
            record.exc_info = record.exc_text = None
        super().emit(record)


def read_report(path: Path) -> tuple[Phase | None, Failure | None]:
    """The last phase, and the first failure, that a `StartReport` wrote.

    The first failure is the cause: the processes above the one that failed report it in their own words.
    """
    phase: Phase | None = None
    failed: Failure | None = None
    if not path.exists():
        return None, None
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            line_report = json.loads(line)
        except ValueError:
            # Being written right now.
            continue
        if "phase" in line_report:
            phase = Phase(line_report["phase"])
        elif failed is None:
            failed = Failure(tuple((kind, message) for kind, message in line_report["failure"]))
    return phase, failed


def logging_config(report: Path, level: str) -> dict[str, Any]:
    """The `dictConfig` for vLLM's processes: records of `level` to standard error, the start to `report`."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"format": "%(asctime)s %(levelname)s vllm[%(process)d]: %(message)s"}},
        "handlers": {
            "console": {
                "class": f"{__name__}.{Console.__name__}",
                "formatter": "line",
                "level": level,
                "stream": "ext://sys.stderr",
            },
            "start": {"class": f"{__name__}.{StartReport.__name__}", "path": str(report)},
        },
        "loggers": {
            "vllm": {
                "handlers": ["console", "start"],
                "level": "DEBUG" if level == "DEBUG" else "INFO",
                "propagate": False,
            }
        },
    }


def end_with_parent() -> None:
    """End this process when its parent does, also by SIGKILL; vLLM's processes would stay and hold the GPU.

    SIGINT is blocked: Ctrl+C goes to all processes of a terminal, and the parent needs this one until its drain ends.
    """
    parent = multiprocessing.parent_process()
    name = "end-with-parent"
    if parent is None or any(thread.name == name for thread in threading.enumerate()):
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def watch() -> None:
        wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_S)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name=name, daemon=True).start()
