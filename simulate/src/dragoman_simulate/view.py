"""What an autoscaler may see of a fleet, and what one is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

TARGET_UTILISATION = 0.8
"""Default of the target concurrency, as a ratio of `max_num_seqs`."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Replicas that show the same figures.

    Attributes:
        running: Sequences in the engine of each.
        waiting: Requests in the queue of each.
        kv_usage: Share of its KV cache that each uses, 0 to 1.
    """

    replicas: int
    running: float
    waiting: float
    kv_usage: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """What the ready replicas' own metrics say.

    Attributes:
        alike: The ready replicas, those alike together.
        finished_total: Requests that they have finished since the replay began; may fall when one leaves.
        source_tokens: Mean length of a request before translation.
        target_tokens: Mean length after it.
    """

    alike: tuple[Alike, ...]
    finished_total: float
    source_tokens: float
    target_tokens: float

    @property
    def running(self) -> float:
        """Sequences in all engines."""
        return sum(group.replicas * group.running for group in self.alike)

    @property
    def waiting(self) -> float:
        """Requests in all queues."""
        return sum(group.replicas * group.waiting for group in self.alike)


@dataclass(frozen=True, slots=True)
class View:
    """A fleet at one moment.

    Attributes:
        now_s: Seconds since the replay began.
        queued: Requests that wait at the router because no replica is ready.
        metrics: None while metrics cannot be had.
    """

    now_s: float
    desired: int
    ready: int
    pending: int
    queued: float
    metrics: Metrics | None


@dataclass(frozen=True)
class ScalingLimits:
    """What every policy of one comparison is given.

    Attributes:
        max_num_seqs: Sequences that one replica runs at once.
        target_concurrency: Running and waiting requests that one replica should have.
        target_wait_s: Wait that a request should not exceed.
        start_up_s: Time from the creation of a replica to its first request.
        kv_cache_tokens: Tokens that one replica's KV cache holds.
        idle_s: Silence after which those policies that can go to zero do so, where they have no figure of
            their own.
        tick_s: Seconds between two decisions of our policy; the others keep their published ones.
        objective: Ratio of requests that should wait at most `target_wait_s`, for our policy; 0 to 1.
    """

    minimum: int
    maximum: int
    max_num_seqs: int
    target_concurrency: float
    target_wait_s: float
    start_up_s: float
    kv_cache_tokens: int
    idle_s: float
    tick_s: float
    objective: float


class FleetPolicy(Protocol):
    """A rule that sizes a fleet."""

    @property
    def tick_s(self) -> int:
        """Whole seconds between two calls of `decide`."""

    def decide(self, view: View) -> int:
        """Replicas wanted now, between the limits' minimum and maximum."""
