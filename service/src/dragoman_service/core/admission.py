"""How much a pod takes on: bounds in generations and in tokens, and deadlines that can be met.

There is no queue here. What is admitted goes to the engine at once, which runs what it has room for and
lets the rest wait; admission bounds what waits, and says early what would end late.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from dragoman_contract.files import FILE_CHARACTERS
from dragoman_contract.routing import TIMEOUT_HEADER
from dragoman_protocols.errors import (
    CrowdedOutError,
    DeadlineExceededError,
    InvalidFieldError,
    OverloadedError,
    RequestError,
)
from dragoman_protocols.translation import Split, TranslationRequest
from dragoman_service.core.concurrency import MAX_CONCURRENT_SEGMENTS
from dragoman_service.engine.protocol import Capacity, StallDetector

QUEUED_PER_SEQUENCE = 8
"""Generations that may wait for each sequence that runs, unless it is set: a sentence takes a second or so, and
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
        queued_requests: Generations beyond one for each sequence; None is `QUEUED_PER_SEQUENCE` for each. A request
            counts as many as it may have in the engine at once.
        queued_tokens: Tokens, of prompts and translations, beyond what runs; None is as many as run.
        deadline_aware: Whether a request is refused whose deadline the measured rate says will be missed.
        at_once: Generations of one request in the engine at once, at most.
    """

    queued_requests: int | None = None
    queued_tokens: int | None = None
    deadline_aware: bool = True
    at_once: int = MAX_CONCURRENT_SEGMENTS

    def slots(self, cost: Cost) -> int:
        """Generations that a request has in the engine at once, at most; a request without any counts as one."""
        return min(max(1, cost.generations), self.at_once)


@dataclass(frozen=True)
class Load:
    """What a pod has taken on.

    Args:
        slots: Generations that the requests in flight may have in the engine at once.
        tokens: Theirs, as estimated.
        generating: Generations that the engine has, those that wait in it too.
        tokens_per_s: What the engine gets done when it has more than it can run; None where nothing tells.
    """

    slots: int
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
    slots = min(bounds.slots(cost), max(1, queued_requests))
    if _crowd(load) + slots > capacity.sequences + queued_requests:
        return Refusal(Reason.REQUESTS, retry_after_s(load))
    if load.slots and load.tokens + min(cost.tokens, queued_tokens) > capacity.tokens + queued_tokens:
        return Refusal(Reason.TOKENS, retry_after_s(load))
    if bounds.deadline_aware:
        late_s = expected_s(capacity, load, cost) - time_left_s
        if late_s > 0:
            return Refusal(Reason.DEADLINE, _whole_s(late_s))
    return None


def expected_s(capacity: Capacity, load: Load, cost: Cost) -> float:
    """Seconds in which a request that comes now will be done: those of what waits before it, and its own.

    Nothing is expected, and 0 returned, while there is room or the pace is not known.
    """
    crowd = _crowd(load)
    if crowd < capacity.sequences or load.tokens_per_s is None:
        return 0.0
    # What runs is half done, on average.
    ahead_tokens = load.tokens * (1 - capacity.sequences / 2 / crowd)
    longest_tokens = min(cost.longest_tokens, capacity.tokens // capacity.sequences)
    own_tokens = max(cost.tokens, longest_tokens * capacity.sequences)
    return (ahead_tokens + own_tokens) / load.tokens_per_s


def file_limit_s(characters: int, request_s: float, most_s: float) -> float:
    """Seconds that a file gets: those of a request for every `FILE_CHARACTERS`.

    Args:
        characters: Of its texts.
        request_s: What a request gets, and a file at least.
        most_s: What a file gets at most.
    """
    return max(request_s, min(most_s, request_s * characters / FILE_CHARACTERS))


def _crowd(load: Load) -> int:
    """Generations that run or wait; those that were admitted a moment ago have not reached the engine yet."""
    return max(load.slots, load.generating)


def retry_after_s(load: Load) -> int:
    """Seconds in which about half of the load will be done, 1 where its rate is not known."""
    return 1 if load.tokens_per_s is None else _whole_s(load.tokens / load.tokens_per_s / 2)


def _whole_s(seconds: float) -> int:
    return max(1, min(MOST_RETRY_AFTER_S, math.ceil(seconds)))


class Place:
    """One request's, once it has been admitted.

    Args:
        cost: What it takes, as estimated.
        slots: That it may have in the engine at once.
        admission: That admitted it; it is not counted there yet.

    Attributes:
        generations: That were admitted, with those that were added.
        tokens: Theirs, as estimated.
    """

    def __init__(self, cost: Cost, slots: int, admission: Admission) -> None:
        self.generations, self.tokens = cost.generations, cost.tokens
        self._admission = admission
        self._slots = slots
        self._came_to_crowd = admission.crowded_by_others(0)
        self._open = True

    def late(self, error: DeadlineExceededError) -> RequestError:
        """What a request hears whose time is up: where it had to share an engine that was full, it is not its size.

        Args:
            error: What it would hear otherwise.
        """
        crowded = self._came_to_crowd or self._admission.crowded_by_others(self._slots)
        return CrowdedOutError(str(error), reason=Reason.DEADLINE) if crowded else error

    def served(self) -> None:
        """The engine has done all of it."""
        self._admission.rate.done(self.tokens)

    def add(self, tokens: int) -> None:
        """One more generation than was estimated, in the slot of one that has ended: a retry.

        Args:
            tokens: That it reads and writes, as estimated.
        """
        # A shared generation may outlive the request that started it.
        if self._open:
            self.generations += 1
            self.tokens += tokens
            self._admission.count(0, tokens)

    def close(self) -> None:
        """The request has ended."""
        self._open = False


class Sized(Protocol):
    """What admission wants to know of an engine."""

    @property
    def capacity(self) -> Capacity:
        """What it runs side by side; known once it is loaded."""
        ...

    @property
    def stall_detector(self) -> StallDetector:
        """What it has to do."""
        ...


class Admission:
    """Admits requests and counts those that it has; used from the event loop alone.

    Args:
        bounds: What may wait.
        engine: What runs, once it is loaded.
        longest_s: Seconds that a request may take at most, whatever it asks for.
        file_longest_s: The same for a file, whose time grows with its size; None is as for a request.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        bounds: Bounds,
        engine: Sized,
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
        """What has been admitted and is unfinished."""
        generating = self._engine.stall_detector.generating
        rate = self.rate.tokens_per_s
        if rate is None and self._slots:
            running = self._tokens * min(1.0, self._engine.capacity.sequences / self._slots)
            rate = self.rate.at_most(running)
        return Load(self._slots, self._tokens, generating, rate)

    def crowded_by_others(self, slots: int) -> bool:
        """Whether there is as much as the engine runs at once beside a request.

        Args:
            slots: Of the request, where it is counted already.
        """
        return _crowd(self.load) - slots >= self._engine.capacity.sequences

    @property
    def full(self) -> bool:
        """Whether the smallest request would be refused."""
        return verdict(self._bounds, self._engine.capacity, self.load, Cost(1, 1), math.inf) is not None

    def time_limit_s(self, asked: str | None, file_characters: int | None = None) -> float:
        """Seconds that a request gets.

        Args:
            asked: What it asks for, in seconds; None where it does not.
            file_characters: Of the file that it brings; None where it brings none.

        Raises:
            InvalidFieldError: It is no positive number.
        """
        longest_s = self._longest_s
        if file_characters is not None:
            longest_s = file_limit_s(file_characters, longest_s, self._file_longest_s)
        if asked is None:
            return longest_s
        try:
            limit_s = float(asked)
        except ValueError:
            limit_s = math.nan
        if not limit_s > 0:
            raise InvalidFieldError(f"{TIMEOUT_HEADER}: a positive number of seconds is wanted")
        return min(limit_s, longest_s)

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
        slots = self._bounds.slots(cost)
        place = Place(cost, slots, self)
        self.count(slots, cost.tokens)
        try:
            yield place
        finally:
            place.close()
            self.count(-slots, -place.tokens)

    def count(self, slots: int, tokens: int) -> None:
        """So much more is in flight, or less."""
        capacity = self._engine.capacity
        self._slots += slots
        self._tokens += tokens
        over = self._engine.stall_detector.generating > capacity.sequences or self._tokens > capacity.tokens
        self.rate.under_load(over)


_SAID = {
    Reason.REQUESTS: "this replica has as many requests as may wait; ask again later, or another replica",
    Reason.TOKENS: "this replica has as much text as may wait; ask again later, or another replica",
    Reason.DEADLINE: "what waits here already takes longer than this request has time; ask another replica",
}


PROMPT_TOKENS = 32
"""About what the instruction around a text costs."""

BYTES_BEYOND_ASCII_TOKENS = 0.35
ASCII_CHARS_PER_TOKEN = 4
"""Subword tokenizers make about a token of four letters of English, two of Cyrillic, one of Chinese or of
Devanagari; how many bytes UTF-8 takes for them tells these apart without looking at any."""


def estimated_tokens(text: str) -> int:
    """About how many tokens a text has, in constant time for each byte and without a tokenizer."""
    beyond = 0 if text.isascii() else len(text.encode(errors="surrogatepass")) - len(text)
    return math.ceil(len(text) / ASCII_CHARS_PER_TOKEN + beyond * BYTES_BEYOND_ASCII_TOKENS)


@dataclass(frozen=True)
class Demand:
    """One text for the engine.

    Args:
        text: What it reads.
        answers: Generations of each segment: one, and one for each alternative.
        beside_tokens: Read with each segment beside the instruction: context, instructions.
        answer_tokens: Of each answer; None is as many as the text has.
        whole: Whether the text is one segment; else each line is one.
    """

    text: str
    answers: int = 1
    beside_tokens: int = 0
    answer_tokens: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Cost:
    """What a request takes, as estimated.

    Args:
        tokens: That the engine will read and write for it.
        longest_tokens: Those of them that come one after the other: of its longest segment.
        generations: That the engine will start for it. Retries are added when they start.
    """

    tokens: int
    longest_tokens: int
    generations: int = 1


def demands_of(asked: TranslationRequest) -> tuple[Demand, ...]:
    """What a translation request gives the engine."""
    beside_tokens = estimated_tokens(asked.context) + sum(map(estimated_tokens, asked.instructions))
    whole = asked.split in (Split.NO_LINES, Split.NONE)
    return tuple(Demand(text, 1 + asked.alternatives, beside_tokens, whole=whole) for text in asked.texts)


def cost_of(demands: Iterable[Demand]) -> Cost:
    """About what all of a request takes; its segments are generated side by side as a rule."""
    tokens = longest_tokens = generations = 0
    for demand in demands:
        lines = [line for line in demand.text.splitlines() if line.strip()]
        if not lines:
            continue
        segments = 1 if demand.whole else len(lines)
        read_tokens = estimated_tokens(demand.text)
        written_tokens = read_tokens if demand.answer_tokens is None else demand.answer_tokens
        beside_tokens = PROMPT_TOKENS + demand.beside_tokens
        generations += segments * demand.answers
        tokens += demand.answers * (segments * beside_tokens + read_tokens + written_tokens)
        longest_ratio = 1.0 if demand.whole else max(map(len, lines)) / len(demand.text)
        longest_tokens = max(
            longest_tokens, beside_tokens + math.ceil(longest_ratio * (read_tokens + written_tokens))
        )
    return Cost(tokens, max(PROMPT_TOKENS, longest_tokens), generations)


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
