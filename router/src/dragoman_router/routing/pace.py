"""The rate at which replicas take queued requests, and how many may wait to be answered in time."""

from __future__ import annotations

from collections import deque

WINDOW_S = 10.0
MIN_SPAN_S = 1.0
MIN_TAKEN = 8
MAX_TAKEN = 1024
SHARE = 0.8
"""Share of a request's time that the queue before it may need, because the rate changes while it waits."""


class QueueDrainRate:
    """The times at which queued requests were sent to a replica, since the queue was last empty."""

    def __init__(self) -> None:
        self._taken_s: deque[float] = deque(maxlen=MAX_TAKEN)

    def took(self, now_s: float) -> None:
        """A queued request was sent to a replica."""
        taken_s = self._taken_s
        taken_s.append(now_s)
        while len(taken_s) > MIN_TAKEN and taken_s[0] < now_s - WINDOW_S:
            taken_s.popleft()

    def restart(self) -> None:
        """Forget the rate, because the queue is empty: arrivals decide it now, not the replicas."""
        self._taken_s.clear()

    def per_s(self) -> float:
        """Queued requests sent per second; infinite until enough were sent."""
        taken_s = self._taken_s
        if len(taken_s) < MIN_TAKEN or (span_s := taken_s[-1] - taken_s[0]) < MIN_SPAN_S:
            return float("inf")
        return (len(taken_s) - 1) / span_s

    def capacity(self, left_s: float, in_flight: int) -> float:
        """The number of requests that may wait, so that a request at the end of the queue is answered in its time.

        While all replicas are busy, as many are answered a second as are sent to them; so those in flight take
        `in_flight / per_s` seconds (Little's law), the queue `length / per_s`.

        Returns:
            Requests; infinite while the rate is not known.
        """
        return SHARE * left_s * self.per_s() - in_flight
