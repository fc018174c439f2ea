"""Errors of a replay's input. Each message names the cause and where to correct it."""

from __future__ import annotations

from pathlib import Path


class SimulateError(Exception):
    """Base of every error that `dragoman simulate` reports as one line and exit status 2."""


class TraceError(SimulateError):
    """A trace cannot be read."""

    def __init__(self, path: Path, line: int | None, problem: str) -> None:
        """Say where and what."""
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {problem}")


class SpeedTableError(SimulateError):
    """A table of engine speeds cannot be used."""


class MetricsPageError(SimulateError):
    """A pod's metrics cannot be read, or say too little about its speed."""
