"""OpenTelemetry traces of requests and of their generations, if a collector is configured.

A request's span continues the client's `traceparent`. Below it are its admission and a span for each
generation, whose context goes on to vLLM, which adds spans of its own. No span contains text.

Source: https://www.w3.org/TR/trace-context/ and https://opentelemetry.io/docs/languages/python/
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import TYPE_CHECKING, Any

from dragoman_protocols.errors import RequestError
from dragoman_service.engine.protocol import Capacity, Chunk, Decoding, Engine, Prompt, StallDetector
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
            "traces need OpenTelemetry's packages: install dragoman-service[otel], or name no collector"
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
    def request(self, headers: Mapping[str, str]) -> Iterator[RequestSpan]:
        """The span of a request, while it is answered; `headers` have names in lower case."""
        from opentelemetry.trace import SpanKind

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


class TracedEngine:
    """An engine whose generations have spans, below the span that `trace_headers` name."""

    def __init__(self, engine: Engine, tracing: Tracing) -> None:
        self._engine = engine
        self._tracing = tracing
        self.count_tokens, self.load = engine.count_tokens, engine.load
        self.check, self.aclose = engine.check, engine.aclose

    async def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        request_id: str,
        *,
        priority: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """See `Engine.generate`."""
        from opentelemetry.trace import StatusCode, set_span_in_context

        span = self._tracing.tracer.start_span(
            "generate",
            self._tracing.context.extract(trace_headers or {}),
            attributes={"dragoman.priority": priority, "dragoman.temperature": decoding.temperature},
        )
        headers: dict[str, str] = {}
        self._tracing.context.inject(headers, set_span_in_context(span))
        chunks = self._engine.generate(prompt, decoding, request_id, priority=priority, trace_headers=headers)
        outcome = "aborted"
        try:
            async with aclosing(chunks):
                async for chunk in chunks:
                    if chunk.finish is not None:
                        outcome = chunk.finish.value
                        span.set_attribute("dragoman.prompt_tokens", chunk.prompt_tokens)
                        span.set_attribute("dragoman.output_tokens", chunk.output_tokens)
                    yield chunk
        except RequestError as error:
            outcome = error.code
            span.set_status(StatusCode.ERROR)
            raise
        finally:
            span.set_attribute("dragoman.outcome", outcome)
            span.end()

    @property
    def capacity(self) -> Capacity:
        """See `Engine.capacity`."""
        return self._engine.capacity

    @property
    def stall_detector(self) -> StallDetector:
        """See `Engine.stall_detector`."""
        return self._engine.stall_detector

    @property
    def hidden_metrics(self) -> frozenset[str]:
        """See `Engine.hidden_metrics`."""
        return self._engine.hidden_metrics

    @property
    def max_model_len(self) -> int:
        """See `Engine.max_model_len`."""
        return self._engine.max_model_len
