"""A pod that works in steps, as vLLM does, on a clock of its own: to hold the simulator against."""

import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry, generate_latest

from dragoman_service.http.speeds import Generation, Speeds


@dataclass
class Sequence:
    """One request: when it arrived at the pod, its tokens, and what is left to write."""

    at_s: float
    tokens: int
    left: int
    started: Generation | None = None


@dataclass
class SteppedPod:
    """Each step writes a token of every running sequence, and prefills those that were admitted for it.

    Args:
        seats: Sequences at once.
        base_s: Of a step.
        sequence_s: Of a step, for each sequence.
        prompt_token_s: Of a step, for each token that it prefills.
        step_tokens: Maximum of those.
        request_s: Of the one thread that speaks HTTP, for each request, half before the engine and half after it.
    """

    seats: int = 128
    base_s: float = 0.0023
    sequence_s: float = 0.000025
    prompt_token_s: float = 0.000012
    step_tokens: int = 8192
    request_s: float = 0.0024
    now_s: float = 0.0
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)

    def __post_init__(self) -> None:
        self.speeds = Speeds(self.registry, "m", lambda: self.now_s)

    def page(self) -> str:
        """Its metrics."""
        return generate_latest(self.registry).decode()

    def run(
        self, arrivals: Iterable[tuple[float, int]], again: Callable[[], int | None] = lambda: None
    ) -> list[tuple[float, float, int]]:
        """Serve requests: seconds from now, and tokens.

        Args:
            arrivals: Ascending.
            again: Called at each answer: tokens of a request that arrives then; None for no more.

        Returns:
            Arrival, latency and tokens of each.
        """
        begin_s, order = self.now_s, itertools.count()
        coming = [(begin_s + at_s, next(order), tokens) for at_s, tokens in arrivals]
        heapq.heapify(coming)
        http_s = self.now_s
        waiting: deque[Sequence] = deque()
        running: list[Sequence] = []
        served: list[tuple[float, float, int]] = []
        while coming or waiting or running:
            if not waiting and not running:
                self.now_s = max(self.now_s, coming[0][0])
            while coming and coming[0][0] <= self.now_s:
                at_s, _, tokens = heapq.heappop(coming)
                http_s = max(http_s, at_s) + self.request_s / 2
                waiting.append(Sequence(at_s, tokens, tokens, self.speeds.start(self.seats)))
            admitted = 0
            while waiting and len(running) < self.seats and admitted + waiting[0].tokens <= self.step_tokens:
                admitted += waiting[0].tokens
                running.append(waiting.popleft())
            self.now_s += self.base_s + self.sequence_s * len(running) + self.prompt_token_s * admitted
            for sequence in running:
                sequence.left -= 1
            for sequence in [one for one in running if not one.left]:
                assert sequence.started is not None
                self.speeds.end(sequence.started, sequence.tokens)
                http_s = max(http_s, self.now_s) + self.request_s / 2
                served.append((sequence.at_s - begin_s, http_s - sequence.at_s, sequence.tokens))
                if (more := again()) is not None:
                    heapq.heappush(coming, (http_s, next(order), more))
            running = [one for one in running if one.left]
        return served


def lengths(seed: int) -> Callable[[], int]:
    """Tokens of requests: 10 to 200, half log-uniform and half uniform, as the bench's."""
    draw = random.Random(seed)

    def length() -> int:
        if draw.random() < 0.5:
            return draw.randint(10, 200)
        return round(math.exp(draw.uniform(math.log(10), math.log(200))))

    return length
