"""The pod's own metrics, beside those that the engine keeps in the same registry.

It implements `translate.Observer`: the core tells it what it does with segments.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from dragoman_protocols.errors import CapacityError, CrowdedOutError, OverloadedError, RequestError
from dragoman_protocols.languages import Pair
from dragoman_service.core.admission import Admission, Reason
from dragoman_service.core.glossary_file import GlossaryFile
from dragoman_service.core.stages import Observer, Origin
from dragoman_service.engine.protocol import Phase, StallDetector
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.loop_lag import LoopLag

MOST_PAIRS = 64
"""Pairs that get labels of their own, with each dialect that they come by: a deployment may serve every pair
there is, and a series per pair and outcome would let any caller fill the monitoring system. Later ones count
as `other`."""

OTHER = "other"

LATENCY_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)

DISCONNECTED = "disconnected"
"""Outcome of a request whose client left."""


class Metrics(Observer):
    """Counts requests, segments and tokens.

    Args:
        registry: Where the metrics are registered.
        model_name: Label value, as vLLM's own metrics have it.
        learn: Told of each segment too: its pair, and the tokens that were read and written.
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
        pair = ("source", "target")
        self._requests = self._counter(
            "requests",
            "Requests by outcome: ok, disconnected, or an error's code",
            "dialect",
            *pair,
            "outcome",
        )
        self._latency = self._histogram(
            "request_seconds",
            "Time from a request's last byte to its answer, of those that were translated",
            *("dialect", *pair),
        )
        self._texts = self._counter("texts", "Texts translated")
        self._segments = self._counter("segments", "Segments that the engine translated", *pair)
        self._segment_s = self._histogram(
            "segment_seconds", "Time of a segment in the engine and its queue, retries included", *pair
        )
        self._prompt_tokens = self._counter(
            "prompt_tokens", "Tokens that the engine read for segments", *pair
        )
        self._output_tokens = self._counter("output_tokens", "Tokens that it wrote for them", *pair)
        self._findings = self._counter("guard_findings", "Answers of the model that a guard doubted", "guard")
        self._retries = self._counter("segment_retries", "Segments generated once more for that")
        self._source_kept = self._counter("source_kept_segments", "Segments whose source text was kept")
        self._reused = self._counter(
            "reused_segments", "Segments that needed no generation: from the cache, or one in flight", "how"
        )
        self._refusals = self._counter("admission_refusals", "Requests that were not taken on", "reason")
        self.defects = self._counter(
            "defects", "Requests that ended in an exception that the pod does not foresee"
        ).labels(model_name)
        self.stalled = self._counter(
            "clients_stalled", "Clients disconnected because they did not read their answer"
        ).labels(model_name)
        for reason in Reason:
            self._refusals.labels(model_name, reason.value)

    def watch(
        self, lifecycle: Lifecycle, admission: Admission, stall_detector: StallDetector, lag: LoopLag
    ) -> None:
        """Show the pod's state as gauges, read when metrics are asked for."""
        phase = Gauge(
            "dragoman_phase", "1 for the pod's phase", ["model_name", "phase"], registry=self._registry
        )
        for each in Phase:
            phase.labels(self._model_name, each.value).set_function(
                lambda each=each: float(lifecycle.phase is each)  # type: ignore[misc]
            )
        for name, about, read in (
            ("requests_in_flight", "Requests admitted and unfinished", lambda: lifecycle.in_flight),
            ("start_seconds", "Time that the start took, or has taken so far", lambda: lifecycle.start_s),
            (
                "admitted_tokens",
                "Tokens of the requests in flight, as estimated",
                lambda: admission.load.tokens,
            ),
            (
                "service_tokens_per_second",
                "Estimated tokens a second that were done under load; 0 before there was any",
                lambda: admission.load.tokens_per_s or 0.0,
            ),
            (
                "engine_stalled_seconds",
                "Time without a step of an engine with work",
                lambda: stall_detector.stalled_s,
            ),
            ("event_loop_lag_seconds", "Longest delay of a timer in the last 15 s", lag.worst_s),
        ):
            gauge = Gauge(f"dragoman_{name}", about, ["model_name"], registry=self._registry)
            gauge.labels(self._model_name).set_function(read)

    def watch_glossary(self, glossary: GlossaryFile) -> None:
        """Show as gauges what is in force of the deployment's glossary, and whether its file is."""
        for name, about, read in (
            ("glossary_terms", "Terms of the deployment's glossary in force", lambda: glossary.terms),
            (
                "glossary_stale",
                "1 while the glossary's file cannot be used and its last good terms hold",
                lambda: bool(glossary.problem),
            ),
        ):
            gauge = Gauge(f"dragoman_{name}", about, ["model_name"], registry=self._registry)
            gauge.labels(self._model_name).set_function(read)

    def translated(self, pair: Pair | None, texts: int, latency_s: float, dialect: str) -> None:
        """Count a request that was answered with translations.

        Args:
            pair: Its languages; None where it was no translation.
            texts: How many it had.
            latency_s: Seconds from its last byte to its answer.
            dialect: The API it came by.
        """
        labels = self._labels(pair, dialect)
        self._requests.labels(self._model_name, *labels, "ok").inc()
        self._latency.labels(self._model_name, *labels).observe(latency_s)
        self._texts.labels(self._model_name).inc(texts)

    def refused(self, pair: Pair | None, error: RequestError, dialect: str) -> None:
        """Count a request that was answered with an error.

        Args:
            pair: What it asked for; None where it did not come to that.
            error: The answer.
            dialect: The API it came by.
        """
        self._requests.labels(self._model_name, *self._labels(pair, dialect), error.code).inc()
        if isinstance(error, CapacityError) and not isinstance(error, CrowdedOutError):
            reason = error.reason if isinstance(error, OverloadedError) else error.code
            self._refusals.labels(self._model_name, reason).inc()

    def left(self, pair: Pair | None, dialect: str) -> None:
        """Count a request whose client did not wait for the answer."""
        self._requests.labels(self._model_name, *self._labels(pair, dialect), DISCONNECTED).inc()

    def finding(self, guard: str, origin: Origin) -> None:
        """A guard fired on an answer."""
        del origin
        self._findings.labels(self._model_name, guard).inc()

    def retried(self, origin: Origin) -> None:
        """A segment is generated once more."""
        del origin
        self._retries.labels(self._model_name).inc()

    def source_kept(self, origin: Origin) -> None:
        """A segment was left as it was."""
        del origin
        self._source_kept.labels(self._model_name).inc()

    def segment(
        self, pair: Pair, duration_s: float, prompt_tokens: int, output_tokens: int, origin: Origin
    ) -> None:
        """A segment is done."""
        if self._learn is not None:
            self._learn(pair, prompt_tokens, output_tokens)
        _, *languages = self._labels(pair, origin.dialect)
        self._segments.labels(self._model_name, *languages).inc()
        self._segment_s.labels(self._model_name, *languages).observe(duration_s)
        self._prompt_tokens.labels(self._model_name, *languages).inc(prompt_tokens)
        self._output_tokens.labels(self._model_name, *languages).inc(output_tokens)

    def reused(self, how: str, origin: Origin) -> None:
        """A segment needed no generation of its own."""
        del origin
        self._reused.labels(self._model_name, how).inc()

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(f"dragoman_{name}", about, ["model_name", *labels], registry=self._registry)

    def _histogram(self, name: str, about: str, *labels: str) -> Histogram:
        return Histogram(
            f"dragoman_{name}",
            about,
            ["model_name", *labels],
            buckets=LATENCY_BUCKETS_S,
            registry=self._registry,
        )

    def _labels(self, pair: Pair | None, dialect: str) -> tuple[str, str, str]:
        if pair is None:
            return dialect, OTHER, OTHER
        labels = (dialect, pair.source.tag, pair.target.tag)
        if labels not in self._kept:
            if len(self._kept) >= MOST_PAIRS:
                return dialect, OTHER, OTHER
            self._kept.add(labels)
        return labels
