"""OpenTelemetry traces of requests, if a collector is configured.

A request's span continues the client's `traceparent`. Below it are its admission and, by vLLM, a span for each
generation. No span contains text.

Source: https://www.w3.org/TR/trace-context/ and https://opentelemetry.io/docs/languages/python/
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dragoman_protocols.messages import Request
from dragoman_service.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

EXPORT_TIMEOUT_S = 5
"""Maximum time to send a batch of spans, and so by which an unreachable collector delays the pod's end."""


def tracing(endpoint: str | None, service_name: str) -> Tracing | None:
    """The tracing of a pod; None if it is off.

    Args:
        endpoint: Of an OTLP/HTTP collector, with its path; None turns tracing off.
        service_name: Name of the pod's service unless a variable such as `OTEL_SERVICE_NAME` has another.

    Raises:
        SettingsError: The packages for it are not installed.
    """
    if endpoint is None:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "traces need OpenTelemetry's packages: leave --otlp-endpoint out, or run, in a checkout: "
            "pip install './service[otel]'"
        ) from None
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_TIMEOUT_S)
    return Tracing(BatchSpanProcessor(exporter), service_name)


class Tracing:
    """Creates spans with OpenTelemetry's SDK.

    Its provider is not the process's global one, which is vLLM's to set, and no span is ever made current:
    requests go from task to task, and may end in another than they started in.
    """

    def __init__(self, processor: SpanProcessor, service_name: str) -> None:
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        resource = Resource({SERVICE_NAME: service_name}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self.tracer = self._provider.get_tracer("dragoman_service")
        self.context = TraceContextTextMapPropagator()

    @contextmanager
    def request(self, request: Request) -> Iterator[RequestSpan]:
        """The span of a request, while it is answered."""
        from opentelemetry.trace import SpanKind

        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        span = self.tracer.start_span("translate", self.context.extract(headers), SpanKind.SERVER)
        try:
            yield RequestSpan(self, span)
        finally:
            span.end()

    def close(self) -> None:
        """Send what there is; may take `EXPORT_TIMEOUT_S`."""
        self._provider.shutdown()


class RequestSpan:
    """One request's span.

    Attributes:
        headers: Pass its context on.
    """

    def __init__(self, tracing: Tracing, span: Any) -> None:
        from opentelemetry.trace import set_span_in_context

        below = set_span_in_context(span)
        self._span = span
        self._admission = tracing.tracer.start_span("admission", below)
        self.headers: dict[str, str] = {}
        tracing.context.inject(self.headers, below)

    def admitted(self, texts: int, tokens: int) -> None:
        """The request was admitted, with its number of texts and their estimated tokens."""
        self._admission.set_attributes({"dragoman.texts": texts, "dragoman.estimated_tokens": tokens})
        self._admission.end()

    def ended(self, outcome: str, **attributes: str) -> None:
        """The request ended, with an outcome as metrics name it and attributes of it: `api`, `source`, `target`."""
        from opentelemetry.trace import StatusCode

        if self._admission.is_recording():
            self._admission.set_attribute("dragoman.outcome", outcome)
            self._admission.end()
        self._span.set_attributes({f"dragoman.{name}": value for name, value in attributes.items()})
        self._span.set_attribute("dragoman.outcome", outcome)
        self._span.set_status(StatusCode.OK if outcome == "ok" else StatusCode.ERROR)
