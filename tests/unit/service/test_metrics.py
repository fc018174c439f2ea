from prometheus_client import CollectorRegistry

from dragoman_service.languages import Pair, language
from dragoman_service.lifecycle import Lifecycle
from dragoman_service.metrics import MOST_PAIRS, Metrics

TAGS = ("en", "de", "fr", "ne", "es", "it", "nl", "pt", "pl")


def test_requests_are_counted_by_pair_and_outcome() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, Lifecycle(), "m")
    pair = Pair(language("en"), language("pt-br"))
    metrics.translated(pair, texts=3, latency_s=0.2)
    metrics.refused(pair, "timeout")
    metrics.refused(None, "malformed_request")

    def count(source: str, target: str, outcome: str) -> float | None:
        labels = {"model_name": "m", "source": source, "target": target, "outcome": outcome}
        return registry.get_sample_value("dragoman_requests_total", labels)

    assert count("en", "pt-BR", "ok") == 1
    assert count("en", "pt-BR", "timeout") == 1
    assert count("other", "other", "malformed_request") == 1
    assert registry.get_sample_value("dragoman_texts_total", {"model_name": "m"}) == 3


def test_a_caller_cannot_make_series_without_end() -> None:
    registry = CollectorRegistry()
    metrics = Metrics(registry, Lifecycle(), "m")
    pairs = [Pair(language(a), language(b)) for a in TAGS for b in TAGS]
    for pair in pairs:
        metrics.refused(pair, "timeout")
    series = [
        sample.labels
        for family in registry.collect()
        if family.name == "dragoman_requests"
        for sample in family.samples
        if sample.name.endswith("_total")
    ]
    assert len(pairs) > MOST_PAIRS
    assert len(series) == MOST_PAIRS + 1


def test_gauges_follow_the_pod() -> None:
    registry = CollectorRegistry()
    lifecycle = Lifecycle()
    Metrics(registry, lifecycle, "m")
    lifecycle.ready()
    with lifecycle.admit():
        assert registry.get_sample_value("dragoman_requests_in_flight", {"model_name": "m"}) == 1
    assert registry.get_sample_value("dragoman_phase", {"model_name": "m", "phase": "ready"}) == 1
    assert registry.get_sample_value("dragoman_phase", {"model_name": "m", "phase": "loading"}) == 0
