"""How much a pod takes on: bounds in requests and in tokens, and deadlines that can be met.

There is no queue here. What is admitted goes to the engine at once, which runs what it has room for and
lets the rest wait; admission bounds what waits, and says early what would end late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dragoman_service.costs import Cost
from dragoman_service.engine.protocol import Capacity
from dragoman_service.engine.pulse import Pulse
from dragoman_service.errors import InvalidFieldError, OverloadedError
from dragoman_service.service_rate import ServiceRate

QUEUED_PER_SEQUENCE = 8
"""Requests that may wait for each sequence that runs, unless it is set: a sentence takes a second or so, and
callers wait for 30 s at most by default."""

MOST_RETRY_AFTER_S = 60


class Reason(StrEnum):
    """Why a request is not admitted."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DEADLINE = "deadline"


@dataclass(frozen=True)
class Bounds:
    """What may wait for the engine.

    Args:
        queued_requests: Requests beyond one for each sequence; None is `QUEUED_PER_SEQUENCE` for each.
        queued_tokens: Tokens, of prompts and translations, beyond what runs; None is as many as run.
        refuse_late: Whether a request is refused whose deadline the measured rate says will be missed.
    """

    queued_requests: int | None = None
    queued_tokens: int | None = None
    refuse_late: bool = True


@dataclass(frozen=True)
class Load:
    """What a pod has taken on.

    Args:
        requests: Admitted and unfinished.
        tokens: Theirs, as estimated.
        generating: Generations that the engine has, those that wait in it too.
        tokens_per_s: What the engine gets done when it has more than it can run; None where nothing tells.
    """

    requests: int
    tokens: int
    generating: int = 0
    tokens_per_s: float | None = None


@dataclass(frozen=True)
class Refusal:
    """Why a request is not admitted, and in how many seconds it may be."""

    reason: Reason
    retry_after_s: int


def verdict(bounds: Bounds, capacity: Capacity, load: Load, cost: Cost, time_left_s: float) -> Refusal | None:
    """Whether a request may join the others.

    One that costs more than all that may wait is admitted once nothing waits, rather than never.

    Args:
        bounds: What may wait.
        capacity: What runs.
        load: What is there already.
        cost: What it takes.
        time_left_s: Seconds until its caller gives up.

    Returns:
        None where it may, else why not.
    """
    queued_requests = bounds.queued_requests
    if queued_requests is None:
        queued_requests = QUEUED_PER_SEQUENCE * capacity.sequences
    queued_tokens = capacity.tokens if bounds.queued_tokens is None else bounds.queued_tokens
    if load.requests >= capacity.sequences + queued_requests:
        return Refusal(Reason.REQUESTS, retry_after_s(load))
    if load.requests and load.tokens + min(cost.tokens, queued_tokens) > capacity.tokens + queued_tokens:
        return Refusal(Reason.TOKENS, retry_after_s(load))
    if bounds.refuse_late:
        late_s = expected_s(capacity, load, cost) - time_left_s
        if late_s > 0:
            return Refusal(Reason.DEADLINE, _whole_s(late_s))
    return None


def expected_s(capacity: Capacity, load: Load, cost: Cost) -> float:
    """Seconds in which a request that comes now will be done: those of what waits before it, and its own.

    Nothing is expected, and 0 returned, while there is room or the pace is not known.
    """
    # Those that were admitted a moment ago have not reached the engine yet.
    crowd = max(load.requests, load.generating)
    if crowd < capacity.sequences or load.tokens_per_s is None:
        return 0.0
    # What runs is half done, on average.
    ahead_tokens = load.tokens * (1 - capacity.sequences / 2 / crowd)
    longest_tokens = min(cost.longest_tokens, capacity.tokens // capacity.sequences)
    own_tokens = max(cost.tokens, longest_tokens * capacity.sequences)
    return (ahead_tokens + own_tokens) / load.tokens_per_s


def retry_after_s(load: Load) -> int:
    """Seconds in which about half of the load will be done, 1 where its rate is not known."""
    return 1 if load.tokens_per_s is None else _whole_s(load.tokens / load.tokens_per_s / 2)


def _whole_s(seconds: float) -> int:
    return max(1, min(MOST_RETRY_AFTER_S, math.ceil(seconds)))


@dataclass(frozen=True)
class Place:
    """One request's, once it has been admitted.

    Args:
        tokens: What it costs, as estimated.
        rate: Learns that it was served.
    """

    tokens: int
    rate: ServiceRate

    def served(self) -> None:
        """The engine has done all of it."""
        self.rate.done(self.tokens)


class Sized(Protocol):
    """What admission wants to know of an engine."""

    @property
    def capacity(self) -> Capacity:
        """What it runs side by side; known once it is loaded."""
        ...

    @property
    def pulse(self) -> Pulse:
        """What it has to do."""
        ...


class Admission:
    """Admits requests and counts those that it has; used from the event loop alone.

    Args:
        bounds: What may wait.
        engine: What runs, once it is loaded.
        longest_s: Seconds that a request may take at most, whatever it asks for.
        clock: Monotonic seconds.
    """

    def __init__(
        self, bounds: Bounds, engine: Sized, longest_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._bounds = bounds
        self._engine = engine
        self._longest_s = longest_s
        self._rate = ServiceRate(clock)
        self._requests = self._tokens = 0

    @property
    def load(self) -> Load:
        """What has been admitted and is unfinished."""
        generating = self._engine.pulse.generating
        return Load(self._requests, self._tokens, generating, self._rate.tokens_per_s)

    @property
    def full(self) -> bool:
        """Whether the smallest request would be refused."""
        return verdict(self._bounds, self._engine.capacity, self.load, Cost(1, 1), math.inf) is not None

    def time_limit_s(self, asked: str | None) -> float:
        """Seconds that a request gets.

        Args:
            asked: What it asks for, in seconds; None where it does not.

        Raises:
            InvalidFieldError: It is no positive number.
        """
        if asked is None:
            return self._longest_s
        try:
            limit_s = float(asked)
        except ValueError:
            limit_s = math.nan
        if not limit_s > 0:
            raise InvalidFieldError(f"{TIMEOUT_HEADER}: a positive number of seconds is wanted")
        return min(limit_s, self._longest_s)

    @contextmanager
    def admit(self, cost: Cost, time_left_s: float) -> Iterator[Place]:
        """Hold the place of one request while it is answered.

        Args:
            cost: What it takes.
            time_left_s: Seconds until its caller gives up.

        Raises:
            OverloadedError: There is no place, or none in time.
        """
        capacity = self._engine.capacity
        refusal = verdict(self._bounds, capacity, self.load, cost, time_left_s)
        if refusal is not None:
            raise OverloadedError(_SAID[refusal.reason], refusal.retry_after_s, refusal.reason)
        self._requests += 1
        self._tokens += cost.tokens
        self._rate.under_load(self._over(capacity))
        try:
            yield Place(cost.tokens, self._rate)
        finally:
            self._requests -= 1
            self._tokens -= cost.tokens
            self._rate.under_load(self._over(capacity))

    def _over(self, capacity: Capacity) -> bool:
        return self._engine.pulse.generating > capacity.sequences or self._tokens > capacity.tokens


TIMEOUT_HEADER = "X-Request-Timeout"
"""Seconds after which the caller gives up."""

_SAID = {
    Reason.REQUESTS: "this replica has as many requests as may wait; ask again later, or another replica",
    Reason.TOKENS: "this replica has as much text as may wait; ask again later, or another replica",
    Reason.DEADLINE: "what waits here already takes longer than this request has time; ask another replica",
}
