"""What can go wrong before a replay starts. Each message names the cause and the place to mend it."""

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


class MissingPlotterError(SimulateError):
    """`--plot` without matplotlib."""

    def __init__(self) -> None:
        super().__init__("--plot needs matplotlib: install dragoman-bench")
