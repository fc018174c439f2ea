"""Whether an engine that has work gets on with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Pulse:
    """Counts generations, and the time that an engine has owed a step; used from the event loop alone.

    Time counts while there is work, from the last step on, and only a step takes it back: an engine that is
    stuck while its callers give up, one after the other, is noticed all the same, and one that is idle, or
    whose callers leave before it can have done anything, is not.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._generating = 0
        self._owed_s = 0.0
        self._since_s = 0.0

    @property
    def generating(self) -> int:
        """Generations that the engine has been given and has not ended, those that wait for a place too."""
        return self._generating

    @property
    def stalled_s(self) -> float:
        """Seconds that the engine has had work and has made no step."""
        return self._owed_s + (self._clock() - self._since_s if self._generating else 0.0)

    @contextmanager
    def generation(self) -> Iterator[None]:
        """Count one generation while the engine has it."""
        if not self._generating:
            self._since_s = self._clock()
        self._generating += 1
        try:
            yield
        finally:
            self._generating -= 1
            if not self._generating:
                self._owed_s += self._clock() - self._since_s

    def step(self) -> None:
        """The engine has got on with something."""
        self._owed_s = 0.0
        self._since_s = self._clock()
