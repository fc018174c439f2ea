"""Bounds and targets of the autoscaler."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_UTILISATION = 0.8
"""Default target concurrency, as a ratio of `max_num_seqs`."""

MIN_WINDOW_S = 300.0
MAX_WINDOW_S = 1800.0
"""Bounds of the stabilization window: HPA's default, and half an hour."""

MIN_IN_STARTS, MAX_IN_STARTS = 2.0, 30.0
"""Bounds of the window in startup times: at least two, so that it is longer than a replica's startup, and at most
thirty, as keeping a replica for longer costs more than the startup it saves."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds and targets, from `spec.autoscaling` and `spec.engine`.

    Attributes:
        min_replicas: Minimum number of replicas; 0 allows zero.
        max_replicas: Maximum number of replicas, at least 1 and at least `min_replicas`.
        target_concurrency: Target number of running and waiting requests per replica; None: 0.8 ×
            `max_num_seqs`, at least 1.
        target_kv_cache_usage: Target KV cache usage, averaged over replicas, 0 to 1.
        target_queue_time_s: Maximum queue time of a request in a replica. A replica above it is not counted as
            capacity for new requests.
        idle_s: Seconds without requests before scaling to zero, if `min_replicas` is 0.
        scale_down_window_s: Stabilization window, at most `MAX_WINDOW_S`; None: adapted to startup times and
            premature scale-downs.
        tick_s: Seconds between two calls.

    Raises:
        ValueError: A value is out of range, or two contradict each other.
    """

    min_replicas: int
    max_replicas: int
    max_num_seqs: int
    target_concurrency: float | None = None
    target_kv_cache_usage: float = 0.8
    target_queue_time_s: float = 2.0
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
        if self.target_queue_time_s <= 0 or self.tick_s <= 0 or self.idle_s < 0:
            raise ValueError("target_queue_time_s and tick_s must be above 0, and idle_s not below it")
        if self.scale_down_window_s is not None and not 0 < self.scale_down_window_s <= MAX_WINDOW_S:
            raise ValueError(f"scale_down_window_s must be above 0 and at most {MAX_WINDOW_S:g}")

    @property
    def concurrency(self) -> float:
        """Target number of running and waiting requests per replica."""
        return self.target_concurrency or max(1.0, DEFAULT_UTILISATION * self.max_num_seqs)

    def bounded(self, replicas: int) -> int:
        """`replicas`, limited to the minimum and maximum."""
        return min(max(replicas, self.min_replicas), self.max_replicas)

    def window_s(self, time_to_ready_s: float) -> tuple[float, float]:
        """Minimum and maximum of the stabilization window, for this startup time."""
        if self.scale_down_window_s is not None:
            return self.scale_down_window_s, self.scale_down_window_s
        shortest = min(max(MIN_WINDOW_S, MIN_IN_STARTS * time_to_ready_s), MAX_WINDOW_S)
        return shortest, min(max(shortest, MAX_IN_STARTS * time_to_ready_s), MAX_WINDOW_S)
