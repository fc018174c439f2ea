"""When a request that failed is sent to another replica.

Retries that follow real work come out of a budget, a share of all requests, so that replicas that fail under load do
not get more of it (as Finagle's RetryBudget and gRPC's retry throttling do). A request that no replica had begun
costs no replica anything, and is free of it (gRPC calls these transparent retries).
Sources: https://twitter.github.io/finagle/guide/Clients.html#retries, gRFC A6.
"""

from __future__ import annotations

from enum import Enum

SHARE_RATIO = 0.2
RESERVE = 100.0
"""Retries that may come at once: a replica that dies takes all that it had in flight with it."""
RESERVE_PER_S = 10.0
MOST_BROKEN = 3
"""A request that breaks its replica must not go through all of them."""


class Failure(Enum):
    """How far an attempt had come."""

    UNREACHED = "unreached"
    """There was no connection."""
    REFUSED = "refused"
    """The replica said that it had not begun."""
    BROKEN = "broken"
    """The connection ended before an answer; the replica may have worked on it."""
    TIMED_OUT = "timed_out"
    """The deadline passed."""


class RetryBudget:
    """Retries that may follow real work.

    Args:
        now_s: Monotonic seconds.
    """

    def __init__(self, now_s: float) -> None:
        self._balance = RESERVE
        self._at_s = now_s

    @property
    def balance(self) -> float:
        """Retries that could be made at once."""
        return self._balance

    def deposit(self) -> None:
        """A request came."""
        self._balance = min(RESERVE, self._balance + SHARE_RATIO)

    def withdraw(self, now_s: float) -> bool:
        """Whether a retry may be made; it is then accounted for."""
        self._balance = min(RESERVE, self._balance + max(0.0, now_s - self._at_s) * RESERVE_PER_S)
        self._at_s = now_s
        if self._balance < 1:
            return False
        self._balance -= 1
        return True


def may_retry(failure: Failure, broken: int, budget: RetryBudget, now_s: float, deadline_s: float) -> bool:
    """Whether another attempt follows.

    Args:
        failure: How the last one ended; before any byte of an answer reached the caller.
        broken: How many attempts broke off, this one included.
        budget: Charged where the failed attempt may have cost work.
        now_s: Monotonic seconds.
        deadline_s: When the request is given up.
    """
    if failure is Failure.TIMED_OUT or now_s >= deadline_s:
        return False
    return failure is not Failure.BROKEN or (broken < MOST_BROKEN and budget.withdraw(now_s))
