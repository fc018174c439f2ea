"""An engine of a given pace under a given load, by its counters: closed loop, a sample every five seconds."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from dragoman_operator.scraping.values import EngineMetrics
from dragoman_operator.tuning.decision.measurements import Measurements

T0 = 1_767_323_000.0
TICK_S = 5.0
TOKENS_EACH = 85

Pace = Callable[[float], float]
"""Seconds that one running sequence takes for a token, by the number that run."""


def steady(running: float) -> float:
    """Weights read once a step, and a little more for each sequence."""
    return 0.0025 + 0.00005 * running


@dataclass
class Pod:
    """An engine of one size, with so many requests in flight at all times.

    Args:
        size: Its max_num_seqs.
        pace: See `Pace`.
        noise: Deviation of the tokens written in a sample.
        kv_each: Share of the KV cache that a sequence takes.
        seed: Of the noise.
    """

    size: int
    pace: Pace = steady
    noise: float = 0.02
    kv_each: float = 0.0
    seed: int = 0
    now: EngineMetrics = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.now = EngineMetrics(T0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    def sample(self, in_flight: float, at: float | None = None) -> tuple[EngineMetrics, EngineMetrics]:
        """Serve for a tick; the counters before and after."""
        before = self.now
        at = before.at + TICK_S if at is None else at
        span_s = at - before.at
        running = min(in_flight, float(self.size))
        waiting = in_flight - running
        rate = running / self.pace(running) if running else 0.0
        tokens = max(0.0, rate * span_s * (1 + self._random.gauss(0, self.noise)))
        usage = min(1.0, running * self.kv_each)
        ended = tokens / TOKENS_EACH
        self.now = EngineMetrics(
            at=at,
            running=running,
            waiting=waiting,
            kv_usage=usage,
            tokens=(before.tokens or 0) + tokens,
            decode_s=(before.decode_s or 0) + running * span_s,
            decode_n=(before.decode_n or 0) + tokens,
            queue_s=(before.queue_s or 0) + waiting * span_s,
            queue_n=(before.queue_n or 0) + ended,
            finished=(before.finished or 0) + ended,
            preemptions=(before.preemptions or 0) + (0.2 * ended if running * self.kv_each > 1 else 0.0),
        )
        return EngineMetrics(before.at, running, waiting, *_rest(before)), self.now


def _rest(of: EngineMetrics) -> tuple[float | None, ...]:
    return (
        *(of.kv_usage, of.tokens, of.decode_s, of.decode_n, of.queue_s, of.queue_n),
        *(of.finished, of.preemptions),
    )


def watched(pod: Pod, loads: list[float]) -> Measurements:
    """The measurements of a pod under one load after another."""
    measurements = Measurements(started=pod.now.at)
    for load in loads:
        measurements = measurements.seen(*pod.sample(load))
    return measurements
