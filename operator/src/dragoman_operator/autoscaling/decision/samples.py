"""Input and output of the decision."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dragoman_operator.autoscaling.decision.history import History

UNMEASURED_TIME_TO_READY_S = 120.0
"""Assumed startup time before the first measurement: a warm cache and a model of some gigabytes."""


@dataclass(frozen=True, slots=True)
class ReplicaSample:
    """Last metrics of one ready replica.

    Attributes:
        at: Time of the scrape, Unix seconds; None if never scraped. An old sample counts as missing.
        running: Sequences in the engine (`vllm:num_requests_running`).
        waiting: Requests in its queue (`vllm:num_requests_waiting`).
        kv_usage: KV cache usage, 0 to 1; None without the metric, under its new or old name.
        finished_per_s: Requests finished per second since the sample before (rate of
            `vllm:request_success_total`); None for a first sample, or without the counter.
    """

    at: float | None
    running: float = 0.0
    waiting: float = 0.0
    kv_usage: float | None = None
    finished_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class TotalLoad:
    """Load of one TranslationDeployment, summed over all routers.

    Attributes:
        in_flight: Requests sent to replicas and unfinished.
        not_reporting: Routers without a recent report; they may have queued requests.
    """

    queued: int = 0
    in_flight: int = 0
    not_reporting: int = 0


@dataclass(frozen=True, slots=True)
class Samples:
    """One deployment at one time.

    Attributes:
        replicas: One sample for each ready replica, in any order; a replica without metrics has one too.
        pending: Replicas that exist, or are desired, and are not ready.
        pending_s: Age of the oldest of them, seconds.
        queued: Requests queued at the routers because no replica is ready.
        time_to_ready_s: Measured from the creation of a replica to its readiness; None before the first.
        routers_not_reporting: Routers without a load report; they may have queued requests.
    """

    desired: int
    replicas: tuple[ReplicaSample, ...]
    pending: int = 0
    pending_s: float = 0.0
    queued: float = 0.0
    time_to_ready_s: float | None = None
    routers_not_reporting: int = 0

    @property
    def ready(self) -> int:
        """Ready replicas."""
        return len(self.replicas)

    @property
    def start_s(self) -> float:
        """Expected startup time of a replica in seconds."""
        return UNMEASURED_TIME_TO_READY_S if self.time_to_ready_s is None else self.time_to_ready_s


class Rule(StrEnum):
    """The rule that determined the number."""

    BOUNDS = "Bounds"
    METRICS = "MetricsMissing"
    FROM_ZERO = "ScaleFromZero"
    STARTING = "Starting"
    BACKLOG = "Backlog"
    TREND = "Trend"
    LOAD = "Load"
    KV_CACHE = "KvCache"
    LIMIT = "ScaleUpLimit"
    STEADY = "Steady"
    STABILIZED = "ScaleDownStabilized"
    SCALE_DOWN = "ScaleDown"
    IDLE = "Idle"
    REQUESTED = "Requested"
    RESUMED = "Resumed"
    SPEC = "Spec"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A number of replicas, the rule that it comes from, and its reason."""

    replicas: int
    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class Signals:
    """Measurements behind a decision, for the status.

    Attributes:
        kv_usage: Mean KV cache usage, 0 to 1; None without that metric.
        arrivals_per_s: Arrival rate over the last minute; None while unknown.
        by_load: Replicas required by the load, not rounded.
        by_kv_cache: Replicas required by KV cache usage, not rounded; None without that metric.
    """

    running: float = 0.0
    waiting: float = 0.0
    missing: int = 0
    kv_usage: float | None = None
    arrivals_per_s: float | None = None
    service_s: float | None = None
    by_load: float = 0.0
    by_kv_cache: float | None = None
    window_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Decision:
    """The number of replicas.

    Attributes:
        metrics_available: Whether enough replicas report metrics; the condition MetricsAvailable.
    """

    replicas: int
    rule: Rule
    reason: str
    metrics_available: bool
    signals: Signals
    history: History
