from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client import CollectorRegistry

from dragoman_protocols.messages import Request
from dragoman_service.http.metrics import Metrics, RequestRecords
from dragoman_service.http.tracing import Tracing, tracing
from dragoman_service.settings import Settings

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def sent(header: str | None = f"00-{TRACE}-00f067aa0ba902b7-01") -> Request:
    headers = [] if header is None else [(b"traceparent", header.encode())]
    return Request("POST", "/translate", b"", headers)


class Traced:
    def __init__(self) -> None:
        self.memory = InMemorySpanExporter()
        self.tracing = Tracing(SimpleSpanProcessor(self.memory), "european")

    def span(self, name: str) -> Any:
        (found,) = [span for span in self.memory.get_finished_spans() if span.name == name]
        return found


async def test_a_request_s_spans_continue_the_caller_s_trace() -> None:
    traced = Traced()
    with traced.tracing.request(sent()) as span:
        span.admitted(texts=1, tokens=70)
        passed_on = span.headers["traceparent"]
        span.ended("ok", api="native", source="en", target="de")
    request, admission = map(traced.span, ("translate", "admission"))
    for each in (request, admission):
        assert f"{each.context.trace_id:032x}" == TRACE
    assert f"{request.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert admission.parent.span_id == request.context.span_id
    assert passed_on == f"00-{TRACE}-{request.context.span_id:016x}-01", "vLLM's spans are below it"
    assert request.attributes == {
        "dragoman.api": "native",
        "dragoman.source": "en",
        "dragoman.target": "de",
        "dragoman.outcome": "ok",
    }
    assert request.resource.attributes["service.name"] == "european"
    assert admission.attributes == {"dragoman.texts": 1, "dragoman.estimated_tokens": 70}


async def test_a_refused_request_has_its_outcome() -> None:
    traced = Traced()
    with traced.tracing.request(sent(None)) as span:
        span.ended("overloaded", api="deepl")
    assert traced.span("translate").status.status_code is StatusCode.ERROR
    assert traced.span("translate").parent is None
    assert traced.span("admission").attributes == {"dragoman.outcome": "overloaded"}


@pytest.mark.parametrize("header", ["", "junk", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "ff-1-2-3"])
async def test_a_trace_header_that_is_none_begins_a_trace(header: str) -> None:
    traced = Traced()
    with traced.tracing.request(sent(header)) as span:
        span.ended("ok")
    assert traced.span("translate").parent is None


async def test_without_a_collector_nothing_is_traced() -> None:
    assert tracing(None, "m") is None
    with RequestRecords(Metrics(CollectorRegistry(), "m"), None).request("native", sent()) as record:
        assert record.origin.trace_headers is None
        record.translated()


def test_spans_reach_a_collector(collector: Any) -> None:
    on = tracing(f"{collector.url}/v1/traces", "european")
    assert on is not None
    with on.request(sent()) as span:
        span.ended("ok")
    on.close()
    assert {each.name for each in collector.spans} == {"translate", "admission"}


@pytest.mark.parametrize(
    ("flag", "environment", "endpoint"),
    [
        (None, {}, None),
        ("http://otel:4318", {}, "http://otel:4318/v1/traces"),
        ("http://otel:4318/", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, "http://otel:4318/v1/traces"),
        (None, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x:1/base/"}, "http://x:1/base/v1/traces"),
        (None, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x/exact"}, "http://x/exact"),
        ("http://otel:4318", {"OTEL_SDK_DISABLED": "true"}, None),
    ],
)
def test_the_collector_is_named_by_the_flag_or_by_opentelemetry_s_variables(
    monkeypatch: pytest.MonkeyPatch,
    make_settings: Any,
    flag: str | None,
    environment: dict[str, str],
    endpoint: str | None,
) -> None:
    for name in ("OTEL_SDK_DISABLED", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    settings: Settings = make_settings(otlp_endpoint=flag)
    assert settings.traces_endpoint == endpoint
