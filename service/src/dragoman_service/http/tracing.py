"""OpenTelemetry traces of requests and of their generations; nothing at all unless a collector is named.

A request's span continues the caller's `traceparent`. Below it stand its admission and a span for each
generation, whose context goes on to vLLM, which adds spans of its own. No text is ever put into a span.

Source: https://www.w3.org/TR/trace-context/ and https://opentelemetry.io/docs/languages/python/
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import AbstractContextManager, aclosing, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from dragoman_protocols.errors import RequestError
from dragoman_service.engine.protocol import Capacity, Chunk, Decoding, Engine, Prompt, Report, StallDetector
from dragoman_service.errors import SettingsError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

EXPORT_TIMEOUT_S = 5
"""What a batch of spans may take to be sent, and so the most by which a collector that is gone delays the
pod's end."""


class RequestSpan(Protocol):
    """One request's span."""

    @property
    def headers(self) -> Mapping[str, str] | None:
        """What passes its context on; None where there is none."""
        ...

    def admitted(self, texts: int, tokens: int) -> None:
        """The request was taken on.

        Args:
            texts: How many it has.
            tokens: What it will cost, as estimated.
        """
        ...

    def ended(self, outcome: str, **attributes: str) -> None:
        """How it ended.

        Args:
            outcome: As metrics name it.
            attributes: What is known of it: `dialect`, `source`, `target`.
        """
        ...


class Tracing(Protocol):
    """Makes spans."""

    def request(self, headers: Mapping[str, str]) -> AbstractContextManager[RequestSpan]:
        """The span of a request, while it is answered.

        Args:
            headers: As they came, by names in lower case.
        """
        ...

    def engine(self, engine: Engine) -> Engine:
        """The engine, each of its generations with a span."""
        ...

    def close(self) -> None:
        """Send what there is; may take `EXPORT_TIMEOUT_S`."""
        ...


class Untraced:
    """Makes none; it is its own span."""

    headers: Mapping[str, str] | None = None

    @contextmanager
    def request(self, headers: Mapping[str, str]) -> Iterator[Untraced]:
        """Nothing."""
        del headers
        yield self

    def admitted(self, texts: int, tokens: int) -> None:
        """Nothing."""

    def ended(self, outcome: str, **attributes: str) -> None:
        """Nothing."""

    def engine(self, engine: Engine) -> Engine:
        """The engine as it is."""
        return engine

    def close(self) -> None:
        """Nothing."""


def tracing(endpoint: str | None, service_name: str) -> Tracing:
    """What makes the spans of a pod.

    Args:
        endpoint: Where an OTLP/HTTP collector takes traces, with its path; None turns tracing off.
        service_name: Name of the pod's service unless `OTEL_SERVICE_NAME` or the like says another.

    Raises:
        SettingsError: The packages for it are not installed.
    """
    if endpoint is None:
        return Untraced()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise SettingsError(
            "traces need OpenTelemetry's packages: install dragoman-service[otel], or name no collector"
        ) from None
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_TIMEOUT_S)
    return OpenTelemetry(BatchSpanProcessor(exporter), service_name)


class OpenTelemetry:
    """Makes spans by OpenTelemetry's SDK.

    Its provider is not the process's global one, which is vLLM's to set, and no span is ever made current:
    requests go from task to task, and may end in another than they began in.

    Args:
        processor: Takes the spans that end.
        service_name: See `tracing`.
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
        """See `Tracing.request`."""
        from opentelemetry.trace import SpanKind

        span = self.tracer.start_span("translate", self.context.extract(headers), SpanKind.SERVER)
        try:
            yield _Span(self, span)
        finally:
            span.end()

    def engine(self, engine: Engine) -> Engine:
        """See `Tracing.engine`."""
        return TracedEngine(engine, self)

    def close(self) -> None:
        """See `Tracing.close`."""
        self._provider.shutdown()


class _Span:
    """One request's span, by OpenTelemetry."""

    def __init__(self, tracing: OpenTelemetry, span: Any) -> None:
        from opentelemetry.trace import set_span_in_context

        below = set_span_in_context(span)
        self._span = span
        self._admission = tracing.tracer.start_span("admission", below)
        self._headers: dict[str, str] = {}
        tracing.context.inject(self._headers, below)

    @property
    def headers(self) -> Mapping[str, str] | None:
        """See `RequestSpan.headers`."""
        return self._headers

    def admitted(self, texts: int, tokens: int) -> None:
        """See `RequestSpan.admitted`."""
        self._admission.set_attributes({"dragoman.texts": texts, "dragoman.estimated_tokens": tokens})
        self._admission.end()

    def ended(self, outcome: str, **attributes: str) -> None:
        """See `RequestSpan.ended`."""
        from opentelemetry.trace import StatusCode

        if self._admission.is_recording():
            self._admission.set_attribute("dragoman.outcome", outcome)
            self._admission.end()
        self._span.set_attributes({f"dragoman.{name}": value for name, value in attributes.items()})
        self._span.set_attribute("dragoman.outcome", outcome)
        self._span.set_status(StatusCode.OK if outcome == "ok" else StatusCode.ERROR)


class TracedEngine:
    """An engine whose generations have spans, below the span that `trace_headers` name.

    Args:
        engine: What generates.
        tracing: What makes the spans.
    """

    def __init__(self, engine: Engine, tracing: OpenTelemetry) -> None:
        self._engine = engine
        self._tracing = tracing

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

    def count_tokens(self, text: str) -> int:
        """See `Engine.count_tokens`."""
        return self._engine.count_tokens(text)

    async def load(self, report: Report) -> None:
        """See `Engine.load`."""
        await self._engine.load(report)

    async def check(self) -> None:
        """See `Engine.check`."""
        await self._engine.check()

    async def aclose(self, drain_s: float) -> None:
        """See `Engine.aclose`."""
        await self._engine.aclose(drain_s)
