"""Progress on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

EVERY_S = 10.0
"""Between two lines where no terminal shows a bar."""

Advance = Callable[[int], None]
"""Called with how many more are done."""


class Pace:
    """How many of a number are done, and how fast.

    Args:
        total: Of how many.
        done: By an earlier run, which does not count for the rate.
    """

    def __init__(self, total: int, done: int) -> None:
        self.total, self.done = total, done
        self._before = done
        self._began_s = time.monotonic()

    @property
    def per_s(self) -> float:
        """Since the beginning."""
        return (self.done - self._before) / max(time.monotonic() - self._began_s, 1e-9)

    def __str__(self) -> str:
        left = f", {(self.total - self.done) / self.per_s:.0f} s left" if self.per_s else ""
        return f"{self.done} of {self.total}, {self.per_s:.1f}/s{left}"


@contextmanager
def progress(title: str, total: int, done: int = 0) -> Iterator[Advance]:
    """Show progress of `total` things, of which `done` are before it begins."""
    console = Console(stderr=True)
    pace = Pace(total, done)
    if not console.is_terminal:
        yield _in_lines(title, pace)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as shown:
        task = shown.add_task(title, total=total, completed=done, rate="")

        def advance(count: int) -> None:
            pace.done += count
            shown.update(task, completed=pace.done, rate=f"{pace.per_s:.1f}/s")

        yield advance


def _in_lines(title: str, pace: Pace) -> Advance:
    if pace.done:
        print(f"{title}: {pace.done} of {pace.total} were done before", file=sys.stderr, flush=True)
    said_s = time.monotonic()

    def advance(count: int) -> None:
        nonlocal said_s
        pace.done += count
        if time.monotonic() - said_s >= EVERY_S:
            said_s = time.monotonic()
            print(f"{title}: {pace}", file=sys.stderr, flush=True)

    return advance
