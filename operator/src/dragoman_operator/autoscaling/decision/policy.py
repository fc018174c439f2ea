"""What a TranslationDeployment asks of its autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_UTILISATION = 0.8
"""Share of `max_num_seqs` that a replica should have running when nobody said otherwise."""

SHORTEST_WINDOW_S = 300.0
LONGEST_WINDOW_S = 1800.0
"""Bounds of the window that shrinking looks back over: HPA's five minutes, and what half an hour can teach."""

SHORTEST_IN_STARTS, LONGEST_IN_STARTS = 2.0, 30.0
"""The window in times to ready: at least two, so that it outlives a replica's start, and by experience up to
thirty, as keeping a replica for longer than that costs more than the start it saves."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and targets, from `spec.autoscaling` and `spec.engine`.

    Attributes:
        min_replicas: Fewest replicas; 0 allows zero.
        max_replicas: Most replicas, at least 1 and at least `min_replicas`.
        max_num_seqs: Sequences that one engine runs at once.
        target_concurrency: Requests, running and waiting, that one replica should have; None for 0.8 of
            `max_num_seqs`, at least 1.
        target_kv_cache_usage: Share of the KV cache that may be in use on average, 0 to 1.
        target_wait_s: Seconds a request may wait in a replica's queue; one further behind is not counted on for
            requests that come now.
        idle_s: Seconds without a request after which replicas go to zero, where `min_replicas` is 0.
        scale_down_window_s: How far back shrinking looks, at most `LONGEST_WINDOW_S`; None lets the starts and
            experience say.
        tick_s: Seconds between two calls.

    Raises:
        ValueError: The figures contradict each other.
    """

    min_replicas: int
    max_replicas: int
    max_num_seqs: int
    target_concurrency: float | None = None
    target_kv_cache_usage: float = 0.8
    target_wait_s: float = 2.0
    idle_s: float = 900.0
    scale_down_window_s: float | None = None
    tick_s: float = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.min_replicas <= self.max_replicas or self.max_replicas < 1:
            raise ValueError(
                f"need 0 <= min_replicas {self.min_replicas} <= max_replicas {self.max_replicas} >= 1"
            )
        if self.max_num_seqs < 1 or (self.target_concurrency is not None and self.target_concurrency <= 0):
            raise ValueError("max_num_seqs must be at least 1, and target_concurrency above 0")
        if not 0 < self.target_kv_cache_usage <= 1:
            raise ValueError(
                f"target_kv_cache_usage {self.target_kv_cache_usage} must be above 0 and at most 1"
            )
        if self.target_wait_s <= 0 or self.tick_s <= 0 or self.idle_s < 0:
            raise ValueError("target_wait_s and tick_s must be above 0, and idle_s not below it")
        if self.scale_down_window_s is not None and not 0 < self.scale_down_window_s <= LONGEST_WINDOW_S:
            raise ValueError(f"scale_down_window_s must be above 0 and at most {LONGEST_WINDOW_S:g}")

    @property
    def concurrency(self) -> float:
        """Requests that one replica should have."""
        return self.target_concurrency or max(1.0, DEFAULT_UTILISATION * self.max_num_seqs)

    def bounded(self, replicas: int) -> int:
        """Between the minimum and the maximum."""
        return min(max(replicas, self.min_replicas), self.max_replicas)

    def window_s(self, time_to_ready_s: float) -> tuple[float, float]:
        """The shortest and the longest time that shrinking looks back over, where a replica starts in this time."""
        if self.scale_down_window_s is not None:
            return self.scale_down_window_s, self.scale_down_window_s
        shortest = min(max(SHORTEST_WINDOW_S, SHORTEST_IN_STARTS * time_to_ready_s), LONGEST_WINDOW_S)
        return shortest, min(max(shortest, LONGEST_IN_STARTS * time_to_ready_s), LONGEST_WINDOW_S)
