"""What `/metrics` shows, and what it would be wrong to show."""

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from dragoman_service.engine.vllm.engine import BY_TOKEN
from dragoman_service.http.control import Exposition


def test_what_is_counted_by_token_is_left_out() -> None:
    registry = CollectorRegistry()
    Histogram("vllm:inter_token_latency_seconds", "a", registry=registry).observe(1)
    Histogram("vllm:iteration_tokens_total", "b", registry=registry).observe(1)
    Counter("vllm:generation_tokens_total", "c", registry=registry).inc()
    page = generate_latest(Exposition(registry, lambda: BY_TOKEN)).decode()
    assert "inter_token" not in page
    assert "iteration_tokens" not in page
    assert "vllm:generation_tokens_total 1.0" in page


def test_all_is_shown_where_it_is_true() -> None:
    registry = CollectorRegistry()
    Histogram("vllm:inter_token_latency_seconds", "a", registry=registry).observe(1)
    assert generate_latest(Exposition(registry, frozenset)) == generate_latest(registry)
