"""The application: the core, the probes and the APIs put together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp

from dragoman_http.event_loop import LoopLag, collect_between_requests
from dragoman_protocols.offer import offer_of
from dragoman_protocols.openapi import document
from dragoman_protocols.routes import ENDPOINTS
from dragoman_protocols.site import Limits, Site
from dragoman_service.core.admission import Admission, Bounds
from dragoman_service.core.long_texts import guard_process, long_texts_process
from dragoman_service.core.priorities import ShortestFirst
from dragoman_service.core.translator import max_concurrent, translator_of
from dragoman_service.engine.devices import usable_cpus
from dragoman_service.engine.protocol import Engine
from dragoman_service.http.control import Control, Exposition, Tolerance
from dragoman_service.http.documents import DocumentStore
from dragoman_service.http.endpoints import Endpoints
from dragoman_service.http.glossaries import GlossaryTerms, open_store
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.metrics import Metrics, RequestRecords
from dragoman_service.http.pipeline import Pipeline
from dragoman_service.http.routes import serve
from dragoman_service.http.start_cache import StartCacheExchange
from dragoman_service.http.tracing import Tracing
from dragoman_service.metric_definitions import CLIENTS_STALLED
from dragoman_service.settings import Settings
from dragoman_service.start_cache.exchange import StartCache

CPUS_FOR_GUARDS = 4
"""HTTP, vLLM's engine and the engine's processes take three."""


class Application(FastAPI):
    """FastAPI with the OpenAPI document of the table of endpoints, and without middleware."""

    def openapi(self) -> dict[str, Any]:
        """The document, of which `/docs` is a view."""
        return document(ENDPOINTS)

    def build_middleware_stack(self) -> ASGIApp:
        """Routes answer their errors; FastAPI's middleware would take 1 % of the processor time of a request."""
        return self.router


Watch = Callable[[], Coroutine[Any, Any, None]]


@dataclass(frozen=True)
class PodApp:
    """The pod's HTTP application, and what runs beside it.

    Args:
        app: Its routes are the endpoints of the APIs, and the cluster's paths.
        warm_up: Awaited while the engine loads.
        watches: Each runs until the end.
        client_stalled: Called for each client that did not read its answer.
    """

    app: FastAPI
    warm_up: Callable[[], Awaitable[None]]
    watches: tuple[Watch, ...]
    client_stalled: Callable[[], None]


def create_app(
    settings: Settings,
    engine: Engine,
    lifecycle: Lifecycle,
    registry: CollectorRegistry,
    tracing: Tracing | None,
    start_cache: StartCache | None = None,
) -> PodApp:
    """The pod's application; it neither loads the engine nor closes it.

    Args:
        settings: The pod's.
        engine: The engine.
        lifecycle: The pod's phase, which `Pod` sets.
        registry: Of the engine's metrics; the pod's own are added.
        tracing: Of the pod; None: it is off.
        start_cache: Of the pod; None: it is off.

    Raises:
        PromptTemplateError: The prompt family cannot be used.
        SettingsError: The directory for glossaries cannot be used.
    """
    bounds = Bounds(
        settings.max_queued_sequences,
        settings.max_queued_tokens,
        settings.deadline_aware_admission,
        max_concurrent(settings),
    )
    admission = Admission(bounds, engine, settings.request_timeout_s, file_longest_s=settings.file_timeout_s)
    shortest = ShortestFirst() if settings.scheduling_policy == "shortest" else None
    metrics = Metrics(registry, settings.name, shortest.learn if shortest else None)
    guards = guard_process() if _has_guard_process(settings) else None
    long_texts = long_texts_process(settings, engine)
    translator = translator_of(settings, engine, metrics, guards, long_texts)
    lag = LoopLag()
    metrics.watch(lifecycle, admission, engine.stall_detector, lag)
    watches: list[Watch] = [lag.watch, partial(collect_between_requests, lifecycle), long_texts.run]
    if guards is not None:
        watches.append(guards.run)
    if glossary := translator.glossary:
        metrics.watch_glossary(glossary)
        watches.append(glossary.watch)
    tolerance = Tolerance(settings.stall_timeout_s, settings.unready_when_overloaded)
    exported = Exposition(registry, lambda: engine.hidden_metrics)
    glossaries = GlossaryTerms(open_store(settings.glossary_dir, settings.cache_dir))
    records = RequestRecords(metrics, tracing, shortest)
    documents = DocumentStore(lifecycle.unfetched)
    pipeline = Pipeline(translator, lifecycle, admission, records, documents, settings.max_body_bytes)
    site = Site(
        offer_of([settings.languages]),
        (settings.name,),
        Limits(settings.max_texts, settings.max_body_bytes),
        page=settings.page,
    )
    endpoints = Endpoints(pipeline, site, glossaries)
    exchange = StartCacheExchange(start_cache, lifecycle, registry)
    control = Control(lifecycle, engine, admission, exported, tolerance, glossaries.attached, exchange)
    app = Application(openapi_url="/openapi.json", docs_url="/docs", redoc_url=None, redirect_slashes=False)
    documentation = app.router.routes
    app.router.routes = [
        *endpoints.routes(records.defect),
        *control.routes(records.defect),
        *documentation,
    ]
    app.router.default = partial(serve, endpoints.unknown, records.defect)

    async def warm_up() -> None:
        await asyncio.gather(translator.warm_up(), exchange.take())

    return PodApp(app, warm_up, tuple(watches), partial(metrics.count, CLIENTS_STALLED))


def _has_guard_process(settings: Settings) -> bool:
    if settings.guard_process is not None:
        return settings.guard_process
    # A model on a CPU uses all of them.
    return settings.device == "cuda" and settings.engine == "vllm" and usable_cpus() >= CPUS_FOR_GUARDS
