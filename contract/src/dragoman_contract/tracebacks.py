"""Tracebacks in a log at a bounded rate: an error that any client can cause must not fill the disk."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

EVERY_S = 1.0


class SparseTracebacks(logging.Filter):
    """Lets one record with a traceback pass in `EVERY_S` seconds, with the number of those left out before it.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._next_s = float("-inf")
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """See `logging.Filter.filter`."""
        if not record.exc_info:
            return True
        now_s = self._clock()
        if now_s < self._next_s:
            self._left_out += 1
            return False
        if self._left_out:
            record.msg = f"{record.msg} ({self._left_out} like it were left out before)"
        self._next_s, self._left_out = now_s + EVERY_S, 0
        return True
