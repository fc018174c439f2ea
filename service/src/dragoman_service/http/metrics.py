"""The pod's own metrics, beside those of the engine in the same registry, and what is counted of each request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_contract.metrics import Metric, by_section
from dragoman_http.event_loop import LoopLag
from dragoman_protocols.errors import (
    CapacityError,
    CrowdedOutError,
    DeadlineExceededError,
    DefectError,
    OverloadedError,
    RequestError,
)
from dragoman_protocols.languages import Pair
from dragoman_protocols.messages import Request
from dragoman_service import metric_definitions
from dragoman_service.core.admission import Admission, AdmissionSlot, Reason
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.stages import Observer, Origin, Priority
from dragoman_service.engine.protocol import Phase, StallDetector
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.speeds import Generation, Speeds
from dragoman_service.http.tracing import RequestSpan, Tracing
from dragoman_service.metric_definitions import (
    ADMISSION_REFUSALS,
    ADMITTED_TOKENS,
    DEFECTS,
    ENGINE_STALLED_SECONDS,
    EVENT_LOOP_LAG_SECONDS,
    GLOSSARY_STALE,
    GLOSSARY_TERMS,
    OUTPUT_TOKENS,
    PHASE,
    PROMPT_TOKENS,
    REQUEST_SECONDS,
    REQUESTS,
    REQUESTS_IN_FLIGHT,
    SEGMENT_SECONDS,
    SEGMENTS,
    SERVICE_TOKENS_PER_SECOND,
    START_SECONDS,
    TEXTS,
)

log = logging.getLogger(__name__)

MAX_PAIRS = 64
"""Combinations of API and pair with labels of their own; later ones are counted as `other`: a deployment may serve
every pair there is, and a series per pair and outcome would let any client fill the monitoring system."""

MAX_SERIES = 4096
"""Series that are looked up once."""

OTHER = "other"

COUNTED_SECTIONS = ("Requests", "Texts and segments")
"""Sections of `metric_definitions` whose counters and histograms this module registers."""

LATENCY_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

DISCONNECTED = "disconnected"
"""Outcome of a request whose client disconnected."""


class Metrics(Observer):
    """Counts requests, segments and tokens.

    Args:
        registry: Where the metrics are registered.
        model_name: Label value, as vLLM's own metrics have it.
        learn: Called for each segment: its pair, and the tokens that were read and written.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        model_name: str,
        learn: Callable[[Pair, int, int], None] | None = None,
    ) -> None:
        self._learn = learn
        self._registry = registry
        self._model_name = model_name
        self._kept: set[tuple[str, str, str]] = set()
        # prometheus_client looks a series up under a lock, by strings that it makes of all labels.
        self._series = lru_cache(maxsize=MAX_SERIES)(
            lambda metric, *labels: self._families[metric].labels(self._model_name, *labels)
        )
        counted = [
            metric
            for metrics in by_section(vars(metric_definitions)).values()
            for metric in metrics
            if metric.section in COUNTED_SECTIONS and metric.kind != "gauge"
        ]
        self._families = {metric: self._family(metric) for metric in counted}
        for reason in Reason:
            self._series(ADMISSION_REFUSALS, reason.value)
        self._speeds = Speeds(registry, model_name)

    def watch(
        self, lifecycle: Lifecycle, admission: Admission, stall_detector: StallDetector, lag: LoopLag
    ) -> None:
        """Export the pod's state as gauges, read at each scrape."""
        phase = self._family(PHASE)
        for each in Phase:
            phase.labels(self._model_name, each.value).set_function(
                lambda each=each: float(lifecycle.phase is each)
            )
        self._export(REQUESTS_IN_FLIGHT, lambda: lifecycle.in_flight)
        self._export(START_SECONDS, lambda: lifecycle.start_s)
        self._export(ADMITTED_TOKENS, lambda: admission.load.tokens)
        self._export(SERVICE_TOKENS_PER_SECOND, lambda: admission.load.tokens_per_s or 0.0)
        self._export(ENGINE_STALLED_SECONDS, lambda: stall_detector.stalled_s)
        self._export(EVENT_LOOP_LAG_SECONDS, lag.worst_s)

    def watch_glossary(self, glossary: GlossaryFile) -> None:
        """Export the deployment's glossary as gauges: its terms in force, and whether its file is invalid."""
        self._export(GLOSSARY_TERMS, lambda: glossary.terms)
        self._export(GLOSSARY_STALE, lambda: bool(glossary.problem))

    def count(self, metric: Metric, *labels: str) -> None:
        """Add one to a counter."""
        self._series(metric, *labels).inc()

    def translated(self, pair: Pair | None, texts: int, latency_s: float, api: str) -> None:
        """Count a request that was answered; `pair` is None if it was no translation."""
        labels = self._labels(pair, api)
        self._series(REQUESTS, *labels, "ok").inc()
        self._series(REQUEST_SECONDS, *labels).observe(latency_s)
        self._series(TEXTS).inc(texts)

    def refused(self, pair: Pair | None, error: RequestError, api: str) -> None:
        """Count a request that was answered with an error; `pair` is None if it is not known."""
        self.count(REQUESTS, *self._labels(pair, api), error.code)
        if isinstance(error, CapacityError) and not isinstance(error, CrowdedOutError):
            reason = error.reason if isinstance(error, OverloadedError) else error.code
            self.count(ADMISSION_REFUSALS, reason)

    def disconnected(self, pair: Pair | None, api: str) -> None:
        """Count a request whose client disconnected before the answer."""
        self.count(REQUESTS, *self._labels(pair, api), DISCONNECTED)

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        """A segment is complete."""
        if self._learn is not None:
            self._learn(pair, prompt_tokens, output_tokens)
        _, *languages = self._labels(pair, origin.api)
        self._series(SEGMENTS, *languages).inc()
        self._series(SEGMENT_SECONDS, *languages).observe(duration_s)
        self._series(PROMPT_TOKENS, *languages).inc(prompt_tokens)
        self._series(OUTPUT_TOKENS, *languages).inc(output_tokens)

    def generation_started(self, sequences: int) -> Generation:
        """A generation starts."""
        return self._speeds.start(sequences)

    def generation_ended(self, started: Generation, output_tokens: int) -> None:
        """It ended."""
        self._speeds.end(started, output_tokens)

    def _family(self, metric: Metric) -> Any:
        labels = ("model_name", *metric.labels)
        if metric.kind == "histogram":
            return Histogram(
                metric.name, metric.help, labels, buckets=LATENCY_BUCKETS_S, registry=self._registry
            )
        make = Counter if metric.kind == "counter" else Gauge
        return make(metric.name, metric.help, labels, registry=self._registry)

    def _export(self, metric: Metric, read: Callable[[], float]) -> None:
        self._family(metric).labels(self._model_name).set_function(read)

    def _labels(self, pair: Pair | None, api: str) -> tuple[str, str, str]:
        if pair is None:
            return api, OTHER, OTHER
        labels = (api, pair.source.tag, pair.target.tag)
        if labels not in self._kept:
            if len(self._kept) >= MAX_PAIRS:
                return api, OTHER, OTHER
            self._kept.add(labels)
        return labels


@dataclass(frozen=True)
class RequestRecords:
    """Counts and traces requests.

    Args:
        tracing: Of the pod; None: it is off.
        priority: Of segments in the engine; None: they have none.
    """

    metrics: Metrics
    tracing: Tracing | None
    priority: Priority | None = None

    @contextmanager
    def request(self, api: str, request: Request) -> Iterator[RequestRecord]:
        """The record of a request of an API, as its head shows it, while it is answered."""
        with nullcontext() if self.tracing is None else self.tracing.request(request) as span:
            yield RequestRecord(self.metrics, span, self.priority, api)

    def defect(self) -> RequestError:
        """Log and count the unexpected exception that is being handled; the error to answer."""
        self.metrics.count(DEFECTS)
        log.exception("unexpected exception")
        return DefectError("a defect; the pod's log has more")


class RequestRecord:
    """Counts and traces one request.

    Attributes:
        pair: Of its translation, once known.
    """

    pair: Pair | None = None

    def __init__(
        self, metrics: Metrics, span: RequestSpan | None, priority: Priority | None, api: str
    ) -> None:
        self._metrics = metrics
        self._span = span
        self._priority = priority
        self._api = api
        self._texts = 0
        self._slot: AdmissionSlot | None = None
        self._received_s = time.monotonic()

    @property
    def origin(self) -> Origin:
        """Passed by the core to the engine and to its observer."""
        return Origin(
            self._api,
            self._priority,
            None if self._span is None else self._span.headers,
            None if self._slot is None else self._slot.add,
        )

    def received(self, api: str) -> None:
        """The body was received, which shows the API; the latency counts from now on."""
        self._api = api
        self._received_s = time.monotonic()

    def admitted(self, slot: AdmissionSlot, texts: int) -> None:
        """The request was admitted."""
        self._slot, self._texts = slot, texts
        if self._span is not None:
            self._span.admitted(texts, slot.tokens)

    def translated(self) -> None:
        """The request was answered."""
        if self._slot is not None:
            self._slot.served()
        latency_s = time.monotonic() - self._received_s
        self._metrics.translated(self.pair, self._texts, latency_s, self._api)
        self._ended("ok")

    def refused(self, error: RequestError) -> RequestError:
        """The request is answered with an error, which is returned as the client gets it."""
        if self._slot is not None and isinstance(error, DeadlineExceededError):
            error = self._slot.late(error)
        self._metrics.refused(self.pair, error, self._api)
        self._ended(error.code)
        return error

    def disconnected(self) -> None:
        """The client disconnected before the answer."""
        self._metrics.disconnected(self.pair, self._api)
        self._ended(DISCONNECTED)

    def _ended(self, outcome: str) -> None:
        if self._span is None:
            return
        pair = self.pair
        languages = {} if pair is None else {"source": pair.source.tag, "target": pair.target.tag}
        self._span.ended(outcome, api=self._api, **languages)
