"""Exponential backoff."""

from __future__ import annotations

from typing import NamedTuple


class Backoff(NamedTuple):
    """Delays that double from one failure in a row to the next.

    Args:
        first_s: Delay after the first failure.
        max_s: Maximum delay.
    """

    first_s: float
    max_s: float

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1 or more)."""
        return min(self.max_s, self.first_s * 2.0 ** min(failures - 1, 30))
