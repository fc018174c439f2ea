"""Admission control: limits on waiting generations and tokens, and deadlines that can be met.

The queue is the engine's: admitted requests go to it at once, and it queues what it cannot run. Admission limits that
queue, and refuses early what would end late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from dragoman_protocols.errors import (
    CrowdedOutError,
    DeadlineExceededError,
    OverloadedError,
    RequestError,
)
from dragoman_protocols.files import FILE_CHARACTERS
from dragoman_protocols.messages import time_limit_s
from dragoman_service.core.concurrency import MAX_CONCURRENT_SEGMENTS
from dragoman_service.core.costs import Cost
from dragoman_service.engine.protocol import Capacity, Engine

QUEUED_PER_SEQUENCE = 8
"""Default maximum of waiting generations per running sequence: a sentence takes about a second, and the default
request timeout is 30 s."""

MAX_RETRY_AFTER_S = 60


class Reason(StrEnum):
    """Why a request is refused."""

    SEQUENCES = "sequences"
    TOKENS = "tokens"
    DEADLINE = "deadline"
    FILES = "files"


@dataclass(frozen=True)
class Bounds:
    """Limits of admission.

    Args:
        queued_sequences: Maximum generations beyond one per sequence; None: `QUEUED_PER_SEQUENCE` for each. A request
            counts as many as it can have in the engine at once.
        queued_tokens: Maximum tokens, of prompts and translations, beyond what runs; None: as many as run.
        deadline_aware: Whether a request is refused that would exceed its time limit at the measured throughput.
        at_once: Maximum generations of one request in the engine at once.
    """

    queued_sequences: int | None = None
    queued_tokens: int | None = None
    deadline_aware: bool = True
    at_once: int = MAX_CONCURRENT_SEGMENTS

    def slots(self, cost: Cost) -> int:
        """Maximum generations that a request has in the engine at once; a request without any counts as one."""
        return min(max(1, cost.generations), self.at_once)


@dataclass(frozen=True)
class Load:
    """Load of a pod.

    Args:
        slots: Maximum generations that the requests in flight have in the engine at once.
        tokens: Their estimated tokens.
        generating: Generations of the engine, queued ones included.
        tokens_per_s: Throughput of the engine under overload; None if unknown.
    """

    slots: int
    tokens: int
    generating: int = 0
    tokens_per_s: float | None = None


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused, and after how many seconds to retry."""

    reason: Reason
    retry_after_s: int


def refusal_for(
    bounds: Bounds, capacity: Capacity, load: Load, cost: Cost, time_left_s: float
) -> Refusal | None:
    """Why a request that would come to `load` is refused; None if it is admitted.

    One that costs more than the whole queue is admitted once nothing waits, rather than never.
    """
    queued_sequences = bounds.queued_sequences
    if queued_sequences is None:
        queued_sequences = QUEUED_PER_SEQUENCE * capacity.sequences
    queued_tokens = capacity.tokens if bounds.queued_tokens is None else bounds.queued_tokens
    slots = min(bounds.slots(cost), max(1, queued_sequences))
    if _in_engine(load) + slots > capacity.sequences + queued_sequences:
        return Refusal(Reason.SEQUENCES, retry_after_s(load))
    if load.slots and load.tokens + min(cost.tokens, queued_tokens) > capacity.tokens + queued_tokens:
        return Refusal(Reason.TOKENS, retry_after_s(load))
    if bounds.deadline_aware:
        late_s = expected_s(capacity, load, cost) - time_left_s
        if late_s > 0:
            return Refusal(Reason.DEADLINE, _retry_s(late_s))
    return None


def expected_s(capacity: Capacity, load: Load, cost: Cost) -> float:
    """Expected seconds until a new request is complete: of what waits before it, and its own.

    0 while the engine has free sequences or the throughput is unknown.
    """
    in_engine = _in_engine(load)
    if in_engine < capacity.sequences or load.tokens_per_s is None:
        return 0.0
    # Running generations are half done, on average.
    ahead_tokens = load.tokens * (1 - capacity.sequences / 2 / in_engine)
    longest_tokens = min(cost.longest_tokens, capacity.tokens // capacity.sequences)
    own_tokens = max(cost.tokens, longest_tokens * capacity.sequences)
    return (ahead_tokens + own_tokens) / load.tokens_per_s


def file_limit_s(characters: int, request_s: float, max_s: float) -> float:
    """Maximum seconds for a file: `request_s` for every `FILE_CHARACTERS` of its texts, up to `max_s`."""
    return max(request_s, min(max_s, request_s * characters / FILE_CHARACTERS))


def _in_engine(load: Load) -> int:
    """Generations that run or wait; those admitted a moment ago have not reached the engine yet."""
    return max(load.slots, load.generating)


def retry_after_s(load: Load) -> int:
    """Seconds in which about half of the load will be done, 1 if the throughput is unknown."""
    return 1 if load.tokens_per_s is None else _retry_s(load.tokens / load.tokens_per_s / 2)


def _retry_s(seconds: float) -> int:
    return max(1, min(MAX_RETRY_AFTER_S, math.ceil(seconds)))


class AdmissionSlot:
    """An admitted request, which has at most `slots` generations in the engine at once.

    Attributes:
        generations: Its generations, with those that were added.
        tokens: Their estimated tokens.
        slots: Maximum generations in the engine at once.
    """

    def __init__(self, cost: Cost, slots: int, admission: Admission) -> None:
        self.generations, self.tokens = cost.generations, cost.tokens
        self._admission = admission
        self.slots = slots
        self._was_overloaded = admission.overloaded_by_others(0)
        self._open = True

    def late(self, error: DeadlineExceededError) -> RequestError:
        """The error of a request whose time limit is exceeded: overload, if the engine was full with others."""
        overloaded = self._was_overloaded or self._admission.overloaded_by_others(self.slots)
        return CrowdedOutError(str(error), reason=Reason.DEADLINE) if overloaded else error

    def served(self) -> None:
        """The request is complete."""
        self._admission.rate.done(self.tokens)

    def set_cost(self, cost: Cost, time_left_s: float) -> None:
        """Replace the estimate with which it was admitted.

        Raises:
            OverloadedError: It is refused with this cost.
        """
        self._admission.count(-self.slots, -self.tokens)
        try:
            self.slots = self._admission.slots_for(cost, time_left_s)
            self.generations, self.tokens = cost.generations, cost.tokens
        finally:
            self._admission.count(self.slots, self.tokens)

    def add(self, tokens: int) -> None:
        """Count one more generation than was estimated, in the slot of one that has ended: a retry."""
        # A shared generation can outlive the request that started it.
        if self._open:
            self.generations += 1
            self.tokens += tokens
            self._admission.count(0, tokens)

    def close(self) -> None:
        """The request has ended."""
        self._open = False


class Admission:
    """Admits requests and counts those in flight; used from the event loop alone.

    Args:
        engine: The engine, once it is loaded.
        longest_s: Maximum seconds for a request.
        file_longest_s: Maximum seconds for a file, whose limit increases with its size; None: as for a request.
    """

    def __init__(
        self,
        bounds: Bounds,
        engine: Engine,
        longest_s: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        file_longest_s: float | None = None,
    ) -> None:
        self._bounds = bounds
        self._engine = engine
        self._longest_s = longest_s
        self._file_longest_s = longest_s if file_longest_s is None else file_longest_s
        self.rate = ServiceRate(clock)
        self._slots = self._tokens = 0

    @property
    def load(self) -> Load:
        """Requests that were admitted and are unfinished."""
        generating = self._engine.stall_detector.generating
        rate = self.rate.tokens_per_s
        if rate is None and self._slots:
            running = self._tokens * min(1.0, self._engine.capacity.sequences / self._slots)
            rate = self.rate.at_most(running)
        return Load(self._slots, self._tokens, generating, rate)

    def overloaded_by_others(self, slots: int) -> bool:
        """Whether requests other than one of `slots` take all that the engine runs at once."""
        return _in_engine(self.load) - slots >= self._engine.capacity.sequences

    @property
    def full(self) -> bool:
        """Whether the smallest request would be refused."""
        return refusal_for(self._bounds, self._engine.capacity, self.load, Cost(1, 1), math.inf) is not None

    def time_limit_s(self, requested: str | None, file_characters: int | None = None) -> float:
        """Maximum seconds for a request, of which `requested` is its own limit, if it has one.

        Raises:
            InvalidFieldError: It is no positive number.
        """
        longest_s = self._longest_s
        if file_characters is not None:
            longest_s = file_limit_s(file_characters, longest_s, self._file_longest_s)
        return min(time_limit_s(requested), longest_s)

    def slots_for(self, cost: Cost, time_left_s: float) -> int:
        """Maximum generations of a request in the engine at once.

        Raises:
            OverloadedError: It is refused.
        """
        refusal = refusal_for(self._bounds, self._engine.capacity, self.load, cost, time_left_s)
        if refusal is not None:
            raise OverloadedError(_MESSAGES[refusal.reason], refusal.retry_after_s, refusal.reason)
        return self._bounds.slots(cost)

    @contextmanager
    def admit(self, cost: Cost, time_left_s: float) -> Iterator[AdmissionSlot]:
        """Count one request, which has `time_left_s` until its time limit, while it is in flight.

        Raises:
            OverloadedError: It is refused.
        """
        slots = self.slots_for(cost, time_left_s)
        slot = AdmissionSlot(cost, slots, self)
        self.count(slots, cost.tokens)
        try:
            yield slot
        finally:
            slot.close()
            self.count(-slot.slots, -slot.tokens)

    def count(self, slots: int, tokens: int) -> None:
        """Add to what is in flight, or subtract."""
        capacity = self._engine.capacity
        self._slots += slots
        self._tokens += tokens
        over = self._engine.stall_detector.generating > capacity.sequences or self._tokens > capacity.tokens
        self.rate.under_load(over)


_MESSAGES = {
    Reason.SEQUENCES: "this replica has the maximum of queued sequences; retry later, or use another replica",
    Reason.TOKENS: "this replica has the maximum of queued text; retry later, or use another replica",
    Reason.DEADLINE: "the requests queued here take longer than the time limit of this request; use another replica",
}

MIN_EVIDENCE_S = 1.0
"""Minimum seconds under load for a measurement."""

RATE_MEMORY_S = 30.0
"""Seconds under load after which a measurement counts for about a third."""


class ServiceRate:
    """Throughput of the engine in tokens a second, measured while requests wait.

    Only then does the engine limit it, and not the arrival rate.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tokens = self._time_s = 0.0
        self._mark_s: float | None = None

    def under_load(self, loaded: bool) -> None:
        """Set whether there is more than the engine can run."""
        if loaded is (self._mark_s is not None):
            return
        self._pass_time()
        self._mark_s = self._clock() if loaded else None

    def done(self, tokens: int) -> None:
        """Count finished work."""
        if self._mark_s is not None:
            self._pass_time()
            self._tokens += tokens

    @property
    def tokens_per_s(self) -> float | None:
        """The rate; None before it was measured."""
        waited_s = 0.0 if self._mark_s is None else self._clock() - self._mark_s
        if self._time_s + waited_s < MIN_EVIDENCE_S or not self._tokens:
            return None
        return self._tokens / (self._time_s + waited_s)

    def at_most(self, running_tokens: float) -> float | None:
        """An upper bound of the rate while nothing was finished under load: what runs, in all this time.

        Without it a slow replica would admit requests until the first are finished, too late for most.

        Returns:
            Tokens a second; None if something was finished, or before it was measured.
        """
        if self._tokens or self._mark_s is None:
            return None
        waited_s = self._time_s + self._clock() - self._mark_s
        return None if waited_s < MIN_EVIDENCE_S else running_tokens / waited_s

    def _pass_time(self) -> None:
        if self._mark_s is None:
            return
        passed_s, self._mark_s = self._clock() - self._mark_s, self._clock()
        kept = math.exp(-passed_s / RATE_MEMORY_S)
        self._tokens *= kept
        self._time_s = self._time_s * kept + passed_s
