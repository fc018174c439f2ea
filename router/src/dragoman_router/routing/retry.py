"""When a request that failed is sent to another replica.

Retries that follow real work are limited to a share of all requests, so that replicas that fail under load do not
get more of it (as Finagle's RetryBudget and gRPC's retry throttling do). A request that no replica had started is
retried outside of this budget (gRPC calls these transparent retries).
Sources: https://twitter.github.io/finagle/guide/Clients.html#retries, gRFC A6.
"""

from __future__ import annotations

from enum import Enum

SHARE_RATIO = 0.2
RESERVE = 100.0
"""Retries that may be made at once: a replica that dies fails all that it had in flight."""
RESERVE_PER_S = 10.0
MAX_BROKEN = 3
"""A request that breaks its replica must not go through all of them."""


class Failure(Enum):
    """How far an attempt had progressed."""

    CONNECT_FAILED = "connect_failed"
    """There was no connection."""
    REFUSED = "refused"
    """The replica reported that it had not started."""
    CONNECTION_LOST = "connection_lost"
    """The connection ended before a response; the replica may have worked on it."""
    TIMED_OUT = "timed_out"
    """The deadline passed."""


class RetryBudget:
    """Retries that may follow real work."""

    def __init__(self, now_s: float) -> None:
        self._balance = RESERVE
        self._at_s = now_s
        self._requests = 0

    def withdraw(self, requests: int, now_s: float) -> bool:
        """Whether a retry may be made; it is then accounted for."""
        earned = (requests - self._requests) * SHARE_RATIO + max(0.0, now_s - self._at_s) * RESERVE_PER_S
        self._balance = min(RESERVE, self._balance + earned)
        self._requests, self._at_s = requests, now_s
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def may_retry(
    failure: Failure, broken: int, budget: RetryBudget, requests: int, now_s: float, deadline_s: float
) -> bool:
    """Whether another attempt follows.

    Args:
        failure: How the last one ended; before any byte of a response reached the client.
        broken: How many attempts broke off, this one included.
        budget: Charged where the failed attempt may have cost work.
        requests: That have arrived since the start.
        now_s: Monotonic seconds.
        deadline_s: Of the request.
    """
    if failure is Failure.TIMED_OUT or now_s >= deadline_s:
        return False
    return failure is not Failure.CONNECTION_LOST or (
        broken < MAX_BROKEN and budget.withdraw(requests, now_s)
    )
