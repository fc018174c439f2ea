"""The pace at which the engine gets things done, as far as that can be seen."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

LEAST_EVIDENCE_S = 1.0
"""Seconds under load before the measured rate means anything."""

RATE_MEMORY_S = 30.0
"""Seconds under load after which what was measured counts for about a third."""


class ServiceRate:
    """Tokens a second that the engine gets done while more wait than it can run.

    Only then is it the engine that sets the pace, and not its callers.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = self._time_s = 0.0
        self._mark_s: float | None = None

    def under_load(self, loaded: bool) -> None:
        """Whether there is more than the engine can run, from now on."""
        if loaded is (self._mark_s is not None):
            return
        self._pass_time()
        self._mark_s = self._clock() if loaded else None

    def done(self, tokens: int) -> None:
        """Take note of work that was finished."""
        if self._mark_s is not None:
            self._pass_time()
            self._tokens += tokens

    @property
    def tokens_per_s(self) -> float | None:
        """The rate; None before there is evidence of it."""
        waited_s = 0.0 if self._mark_s is None else self._clock() - self._mark_s
        if self._time_s + waited_s < LEAST_EVIDENCE_S or not self._tokens:
            return None
        return self._tokens / (self._time_s + waited_s)

    def at_most(self, running_tokens: float) -> float | None:
        """A bound of the rate while nothing has been finished under load: less than what runs, in all this time.

        Without it a slow replica would take on requests until the first are finished, too late for most.

        Args:
            running_tokens: Of the requests that run.

        Returns:
            Tokens a second; None where something was finished, or before there is evidence.
        """
        if self._tokens or self._mark_s is None:
            return None
        waited_s = self._time_s + self._clock() - self._mark_s
        return None if waited_s < LEAST_EVIDENCE_S else running_tokens / waited_s

    def _pass_time(self) -> None:
        if self._mark_s is None:
            return
        passed_s, self._mark_s = self._clock() - self._mark_s, self._clock()
        kept = math.exp(-passed_s / RATE_MEMORY_S)
        self._tokens *= kept
        self._time_s = self._time_s * kept + passed_s
