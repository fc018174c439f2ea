from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from dragoman_contract.metrics import Metric
from dragoman_http.event_loop import LoopLag
from dragoman_protocols.errors import DrainingError, MalformedRequestError, OverloadedError
from dragoman_protocols.languages import Pair, language
from dragoman_service import metric_definitions
from dragoman_service.core.admission import Admission, Bounds
from dragoman_service.core.costs import Cost
from dragoman_service.core.stages import Origin
from dragoman_service.engine.devices import GPUMetrics, GPUs
from dragoman_service.engine.scripted.engine import Script, ScriptedEngine
from dragoman_service.engine.sleeping import SleepMetrics
from dragoman_service.engine.turns import Turns
from dragoman_service.engine.vllm.compat import FALLBACK
from dragoman_service.engine.vllm.graphs import DEFERRED
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.metrics import MAX_PAIRS, Metrics
from dragoman_service.http.start_cache import StartCacheExchange

TAGS = ("en", "de", "fr", "ne", "es", "it", "nl", "pt", "pl")
PAIR = Pair(language("en"), language("pt-br"))


class Counted:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = Metrics(self.registry, "m")

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"dragoman_{name}", {"model_name": "m", **labels})


def test_requests_are_counted_by_api_pair_and_outcome() -> None:
    counted = Counted()
    counted.metrics.translated(PAIR, texts=3, latency_s=0.2, api="native")
    counted.metrics.disconnected(PAIR, "native")
    counted.metrics.refused(None, MalformedRequestError("x"), "deepl")
    labels = {"api": "native", "source": "en", "target": "pt-BR"}
    assert counted.value("requests_total", **labels, outcome="ok") == 1
    assert counted.value("requests_total", **labels, outcome="disconnected") == 1
    nowhere = {"api": "deepl", "source": "other", "target": "other"}
    assert counted.value("requests_total", **nowhere, outcome="malformed_request") == 1
    assert counted.value("request_seconds_count", **labels) == 1
    assert counted.value("texts_total") == 3


def test_refusals_for_load_have_their_reason() -> None:
    counted = Counted()
    assert counted.value("admission_refusals_total", reason="tokens") == 0
    counted.metrics.refused(None, OverloadedError("x", 1, "tokens"), "native")
    counted.metrics.refused(None, DrainingError("x"), "native")
    counted.metrics.refused(None, MalformedRequestError("x"), "native")
    assert counted.value("admission_refusals_total", reason="tokens") == 1
    assert counted.value("admission_refusals_total", reason="draining") == 1
    assert counted.value("admission_refusals_total", reason="malformed_request") is None


def test_a_glossary_shows_what_is_in_force_and_whether_its_file_is() -> None:
    counted = Counted()
    glossary: Any = SimpleNamespace(terms=7, problem="")
    counted.metrics.watch_glossary(glossary)
    assert (counted.value("glossary_terms"), counted.value("glossary_stale")) == (7, 0)
    glossary.problem = "no YAML, line 3"
    assert (counted.value("glossary_terms"), counted.value("glossary_stale")) == (7, 1)


def test_the_core_s_work_is_counted() -> None:
    learned: list[Any] = []
    counted = Counted()
    metrics = Metrics(counted.registry.__class__(), "m", lambda *segment: learned.append(segment))
    metrics.segment(PAIR, 0.5, 40, 12, Origin("native"))
    assert learned == [(PAIR, 40, 12)]
    counted.metrics.segment(PAIR, 0.5, 40, 12, Origin("native"))
    counted.metrics.count(metric_definitions.GUARD_FINDINGS, "copied")
    counted.metrics.count(metric_definitions.SEGMENT_RETRIES)
    counted.metrics.count(metric_definitions.SOURCE_KEPT_SEGMENTS)
    counted.metrics.count(metric_definitions.REUSED_SEGMENTS, "cache")
    pair = {"source": "en", "target": "pt-BR"}
    assert counted.value("segments_total", **pair) == 1
    assert counted.value("segment_seconds_sum", **pair) == 0.5
    assert counted.value("prompt_tokens_total", **pair) == 40
    assert counted.value("output_tokens_total", **pair) == 12
    assert counted.value("guard_findings_total", guard="copied") == 1
    assert counted.value("segment_retries_total") == 1
    assert counted.value("source_kept_segments_total") == 1
    assert counted.value("reused_segments_total", how="cache") == 1


@pytest.mark.parametrize("name", ["dragoman_requests", "dragoman_request_seconds"])
def test_a_caller_cannot_make_series_without_end(name: str) -> None:
    counted = Counted()
    pairs = [Pair(language(a), language(b)) for a in TAGS for b in TAGS]
    for pair in pairs:
        counted.metrics.translated(pair, 1, 0.1, "native")
    suffix = "_total" if name == "dragoman_requests" else "_count"
    series = [
        sample.labels
        for family in counted.registry.collect()
        if family.name == name
        for sample in family.samples
        if sample.name.endswith(suffix)
    ]
    assert len(pairs) > MAX_PAIRS
    assert len(series) == MAX_PAIRS + 1


def test_gauges_follow_the_pod() -> None:
    counted = Counted()
    lifecycle = Lifecycle()
    engine = ScriptedEngine(Script(), "m", CollectorRegistry())
    admission = Admission(Bounds(), engine, 30)
    counted.metrics.watch(lifecycle, admission, engine.stall_detector, LoopLag())
    lifecycle.ready()
    with lifecycle.admit(), admission.admit(Cost(123, 1), 30):
        assert counted.value("requests_in_flight") == 1
        assert counted.value("admitted_tokens") == 123
    assert counted.value("phase", phase="ready") == 1
    assert counted.value("phase", phase="loading") == 0
    assert counted.value("service_tokens_per_second") == 0
    assert counted.value("engine_stalled_seconds") == 0
    assert counted.value("event_loop_lag_seconds") == 0


def test_a_pod_exports_the_metrics_that_are_defined() -> None:
    counted = Counted()
    engine = ScriptedEngine(Script(), "m", CollectorRegistry())
    counted.metrics.watch(Lifecycle(), Admission(Bounds(), engine, 30), engine.stall_detector, LoopLag())
    glossary: Any = SimpleNamespace(terms=0, problem="")
    counted.metrics.watch_glossary(glossary)
    counted.registry.register(GPUMetrics(lambda: True, lambda: GPUs(SimpleNamespace(), {})))
    StartCacheExchange(None, Lifecycle(), counted.registry)
    SleepMetrics(counted.registry, "m")
    Turns("redis://127.0.0.1", "GPU-1", "m", counted.registry)
    shown = {
        family.name + ("_total" if family.type == "counter" else "") for family in counted.registry.collect()
    }
    shown |= {next(iter(metric.describe())).name for metric in (FALLBACK, DEFERRED)}
    defined = [each.name for each in vars(metric_definitions).values() if isinstance(each, Metric)]
    assert sorted(defined) == sorted(shown)
