"""What the autoscaler is shown, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dragoman_operator.autoscaling.decision.history import History

UNMEASURED_TIME_TO_READY_S = 120.0
"""Assumed of a deployment none of whose replicas has started yet: a warm cache and a model of some gigabytes."""


@dataclass(frozen=True, slots=True)
class ReplicaSample:
    """What one ready replica's metrics said last.

    Attributes:
        at: When they were read, Unix seconds; None if never. An old sample is as good as none.
        running: Sequences in the engine (`vllm:num_requests_running`).
        waiting: Requests in its queue (`vllm:num_requests_waiting`).
        kv_usage: Share of the KV cache in use, 0 to 1; None where the metric has neither its new nor its old name.
        finished_per_s: Requests finished per second since the sample before (rate of
            `vllm:request_success_total`); None where there was none before, or the counter is missing.
    """

    at: float | None
    running: float = 0.0
    waiting: float = 0.0
    kv_usage: float | None = None
    finished_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class TotalLoad:
    """What all routers together say of one TranslationDeployment.

    Attributes:
        held: Requests that wait in the routers that were heard of.
        oldest_held_s: For how long the first of them has waited.
        in_flight: Requests passed on and not answered.
        routers: Routers that were heard of.
        silent: Routers that were not: what they hold is not known.
    """

    held: int = 0
    oldest_held_s: float = 0.0
    in_flight: int = 0
    routers: int = 0
    silent: int = 0


@dataclass(frozen=True, slots=True)
class Samples:
    """One deployment at one moment.

    Attributes:
        desired: Replicas asked for now.
        replicas: One sample for each ready replica, in any order; a replica without metrics has one too.
        pending: Replicas that exist, or are asked for, and are not ready.
        pending_s: Age of the oldest of them, seconds.
        held: Requests that the router holds because no replica is ready.
        time_to_ready_s: Measured from the creation of a replica to its readiness; None before the first.
        silent_routers: Routers whose load is not known: what they hold may be anything.
    """

    desired: int
    replicas: tuple[ReplicaSample, ...]
    pending: int = 0
    pending_s: float = 0.0
    held: float = 0.0
    time_to_ready_s: float | None = None
    silent_routers: int = 0

    @property
    def ready(self) -> int:
        """Ready replicas."""
        return len(self.replicas)

    @property
    def start_s(self) -> float:
        """Seconds that a new replica is reckoned to take."""
        return UNMEASURED_TIME_TO_READY_S if self.time_to_ready_s is None else self.time_to_ready_s


class Rule(StrEnum):
    """Which rule decided; the reason says it in a sentence."""

    BOUNDS = "Bounds"
    METRICS = "MetricsMissing"
    WAKE = "Wake"
    STARTING = "Starting"
    BACKLOG = "Backlog"
    TREND = "Trend"
    LOAD = "Load"
    MEMORY = "Memory"
    SURGE = "SurgeLimit"
    STEADY = "Steady"
    WINDOW = "Window"
    SHRINK = "Shrink"
    IDLE = "Idle"


@dataclass(frozen=True, slots=True)
class Signals:
    """The figures behind a decision, for the status.

    Attributes:
        running: Sequences in all engines that were heard of.
        waiting: Requests in their queues.
        held: Requests at the router.
        missing: Ready replicas that were not heard of.
        kv_usage: Mean share of the KV caches in use, 0 to 1; None without that metric.
        arrivals_per_s: Requests per second over the last minute; None before that can be told.
        service_s: Seconds that a request spends in an engine; None likewise.
        by_load: Replicas that the load asks for, not rounded.
        by_memory: Replicas that the KV caches ask for, not rounded; None without that metric.
        window_s: How far back shrinking looks.
    """

    running: float = 0.0
    waiting: float = 0.0
    held: float = 0.0
    missing: int = 0
    kv_usage: float | None = None
    arrivals_per_s: float | None = None
    service_s: float | None = None
    by_load: float = 0.0
    by_memory: float | None = None
    window_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """How many replicas there should be.

    Attributes:
        replicas: As many, between the policy's bounds.
        rule: Which rule decided.
        reason: Why, in a sentence for a person.
        metrics_available: Whether enough replicas were heard of to decide by; the condition MetricsAvailable.
        signals: The figures behind it.
        history: To be given back at the next call.
    """

    replicas: int
    rule: Rule
    reason: str
    metrics_available: bool
    signals: Signals
    history: History
