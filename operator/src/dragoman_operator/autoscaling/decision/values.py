"""Input and output of the decision: policy, samples, and the history between two ticks.

The history is small, and stored as JSON in the object's status: an operator that restarts continues from it. Without
it, or if it is too old, scale-down only waits longer: it needs a whole window of observation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import Field, PlainSerializer, TypeAdapter

DEFAULT_UTILISATION = 0.8
"""Default target concurrency, as a ratio of `max_num_seqs`."""

MIN_WINDOW_S, WINDOW_STARTS, MAX_WINDOW_S = 60.0, 3.0, 1800.0
"""Default stabilization window: three startup times, between a minute and half an hour. The longer a start, the more it
costs to need the replica again."""


def count_of(replicas: int) -> str:
    """A number of replicas in words, for a reason."""
    return "1 replica" if replicas == 1 else f"{replicas} replicas"


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
        scale_down_window_s: Stabilization window, at most `MAX_WINDOW_S`; None: by the startup time of a replica,
            see `window_s`.
        objective: Ratio of requests, 0 to 1, that should wait in a replica for at most `target_queue_time_s`; None:
            none is kept for bursts.
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
    objective: float | None = None
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
        if self.objective is not None and not 0 < self.objective < 1:
            raise ValueError(f"objective {self.objective} must be above 0 and below 1")

    @property
    def concurrency(self) -> float:
        """Target number of running and waiting requests per replica."""
        return self.target_concurrency or max(1.0, DEFAULT_UTILISATION * self.max_num_seqs)

    def bounded(self, replicas: int) -> int:
        """`replicas`, limited to the minimum and maximum."""
        return min(max(replicas, self.min_replicas), self.max_replicas)

    def window_s(self, start_s: float) -> float:
        """Stabilization window, with this startup time of a replica."""
        return self.scale_down_window_s or min(max(MIN_WINDOW_S, WINDOW_STARTS * start_s), MAX_WINDOW_S)


UNMEASURED_TIME_TO_READY_S = 120.0
"""Assumed startup time before the first measurement: a warm cache and a model of some gigabytes."""

POINTS_S = 180.0
"""Age of the oldest arrivals: long enough for a trend over a replica's startup."""

PEAK_EVERY_S = 30.0
"""Peaks closer together than this are stored as one, so that half an hour has at most sixty. With a shorter
stabilization window, a tenth of it."""


Number = Annotated[float, Field(allow_inf_nan=False), PlainSerializer(lambda value: round(value, 3))]
Amount = Annotated[Number, Field(ge=0)]


class Point(NamedTuple):
    """One tick.

    Attributes:
        at: Its end, Unix seconds.
        busy_s: Running time in it, summed over sequences.
    """

    at: Number
    span_s: Annotated[Amount, Field(gt=0)]
    arrived: Amount
    busy_s: Amount
    finished: Amount


class Peak(NamedTuple):
    """Replicas that the load required at one time, not rounded; no later peak is higher."""

    at: Number
    replicas: Amount


class Seen(NamedTuple):
    """The tick before this one."""

    at: Number
    in_flight: Amount
    running: Amount
    ready: Annotated[int, Field(ge=0)]
    missing: Annotated[int, Field(ge=0)]


ARRIVALS_S = 5.0
"""Length of an interval in which arrivals are counted; independent of the time between two ticks."""

ARRIVALS = 720
"""Intervals whose arrivals are kept: an hour."""


class Expected(NamedTuple):
    """What is expected if at least this many replicas are kept.

    Attributes:
        late_ratio: Ratio of requests that would wait longer than the target, 0 to 1.
    """

    replicas: Annotated[int, Field(ge=0)]
    late_ratio: Annotated[Number, Field(ge=0, le=1)]


@dataclass(frozen=True, slots=True)
class History:
    """See the module.

    Attributes:
        observed_since: Start of uninterrupted observation; None before the first tick.
        seen: The last tick; None while metrics are unavailable.
        points: Arrivals of the last `POINTS_S`, oldest first.
        peaks: Replicas that the load required, oldest and highest first.
        scale_ups: Times of the scale-ups of the last minute, and the number of replicas before.
        requested: Replicas requested in `spec.replicas`, kept for a stabilization window; None without a request.
        arrivals: Requests that arrived in each of the last `ARRIVALS` intervals, oldest first, as far as observed.
        arrived: Requests that arrived in the interval that is not complete yet.
        arrived_s: Seconds of that interval.
        learned_s: Seconds of arrivals observed since the first.
        growths: What the last rises were followed by, oldest first; see `rises`.
        busiest_s: Service time under the highest load of the last hours, seconds; None before the first.
        start_s: Startup time of a replica.
        planned_at: Time of the last replay.
        kept: Replicas to keep for the objective; see `objective`.
        expected: What is expected with that many, and with one less.
    """

    observed_since: Number | None = None
    seen: Seen | None = None
    points: tuple[Point, ...] = ()
    peaks: tuple[Peak, ...] = ()
    scale_ups: tuple[tuple[Number, Annotated[int, Field(ge=0)]], ...] = ()
    last_scale_down: Number | None = None
    last_request_at: Number | None = None
    service_s: Amount | None = None
    requested: Peak | None = None
    arrivals: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=ARRIVALS)] = ()
    arrived: Amount = 0.0
    arrived_s: Annotated[Amount, Field(le=ARRIVALS_S)] = 0.0
    learned_s: Amount = 0.0
    growths: tuple[Amount, ...] = ()
    busiest_s: Amount | None = None
    start_s: Amount = UNMEASURED_TIME_TO_READY_S
    planned_at: Number | None = None
    kept: Annotated[int, Field(ge=0)] = 0
    expected: tuple[Expected, ...] = ()

    def with_point(self, point: Point) -> History:
        """With one more tick, and without those that are too old."""
        kept = tuple(old for old in self.points if old.at > point.at - POINTS_S)
        return replace(self, points=(*kept, point))

    def with_peak(self, at: float, replicas: float, keep_s: float, every_s: float = PEAK_EVERY_S) -> History:
        """With the replicas required now; drops lower peaks before it, and those older than `keep_s`."""
        peaks = [peak for peak in self.peaks if peak.at > at - keep_s and peak.replicas > replicas]
        if peaks and peaks[-1].at // every_s == at // every_s:
            peaks[-1] = Peak(at, peaks[-1].replicas)
        else:
            peaks.append(Peak(at, replicas))
        return replace(self, peaks=tuple(peaks))

    def peak(self, since: float) -> float:
        """The maximum number of replicas that the load required since then; 0 without observation."""
        return max((peak.replicas for peak in self.peaks if peak.at >= since), default=0.0)

    def to_json(self) -> str:
        """One line of at most a few kilobytes; numbers are rounded."""
        return _HISTORY.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> History:
        """Decode it. A malformed one is an empty history, which is safe: see the module."""
        try:
            return _HISTORY.validate_json(text or "{}")
        except ValueError:
            return cls()

    def begins_after(self, now: float) -> bool:
        """Whether a time in it is in the future: because of a wrong clock, or edited."""
        parts = (*self.points, *self.peaks, *self.scale_ups, *filter(None, (self.seen, self.requested)))
        times = [
            self.observed_since,
            self.last_scale_down,
            self.last_request_at,
            self.planned_at,
        ]
        times += [part[0] for part in parts]
        return any(time is not None and time > now for time in times)


_HISTORY = TypeAdapter(History)


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
        refused_per_s: Requests refused per second because the queue was full (rate of
            `dragoman_admission_refusals_total`); None likewise.
    """

    at: float | None
    running: float = 0.0
    waiting: float = 0.0
    kv_usage: float | None = None
    finished_per_s: float | None = None
    refused_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Samples:
    """One deployment at one time.

    Attributes:
        replicas: One sample for each ready replica, in any order; a replica without metrics has one too.
        pending: Replicas that exist, or are desired, and are not ready.
        pending_s: Age of the oldest of them, seconds.
        cancellable: Those of them whose start may be cancelled: they were never ready, and there is no rollout.
        queued: Requests queued at the routers because no replica is ready.
        time_to_ready_s: Measured from the creation of a replica to its readiness; None before the first.
        routers_not_reporting: Routers without a load report; they may have queued requests.
    """

    desired: int
    replicas: tuple[ReplicaSample, ...]
    pending: int = 0
    pending_s: float = 0.0
    cancellable: int = 0
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
    OBJECTIVE = "Objective"
    LOAD = "Load"
    KV_CACHE = "KvCache"
    LIMIT = "ScaleUpLimit"
    STEADY = "Steady"
    STABILIZED = "ScaleDownStabilized"
    SCALE_DOWN = "ScaleDown"
    CANCELLED = "StartsCancelled"
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
        expected: With the replicas that are kept for the objective, and with one less.
        expectation: The same in words.
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
    expected: tuple[Expected, ...] = ()
    expectation: str | None = None


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
