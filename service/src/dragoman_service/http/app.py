"""The application: the core, the probes and the APIs put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException
from starlette.status import HTTP_405_METHOD_NOT_ALLOWED

from dragoman_protocols import native
from dragoman_protocols.api import Limits, Site
from dragoman_protocols.api import Request as ApiRequest
from dragoman_protocols.errors import DefectError, MethodNotAllowedError, RequestError, UnknownPathError
from dragoman_protocols.offer import offer_of
from dragoman_protocols.routes import api_of
from dragoman_service.core.admission import Admission, Bounds
from dragoman_service.core.guard_process import GuardProcess
from dragoman_service.core.priorities import ShortestFirst
from dragoman_service.core.translator import max_concurrent, translator_of
from dragoman_service.engine.cpus import usable_cpus
from dragoman_service.engine.protocol import Engine
from dragoman_service.http.answering import Answering, response_of
from dragoman_service.http.control import Exposition, Tolerance, probe_routes, router_routes
from dragoman_service.http.endpoints import Endpoints
from dragoman_service.http.garbage import collect_between_requests
from dragoman_service.http.glossaries import GlossaryTerms, open_store
from dragoman_service.http.lifecycle import Lifecycle
from dragoman_service.http.loop_lag import LoopLag
from dragoman_service.http.metrics import Accounting, Metrics
from dragoman_service.http.tracing import Tracing
from dragoman_service.settings import Settings

CPUS_FOR_GUARDS = 4
"""HTTP, vLLM's engine and the engine's processes take three."""


def create_app(
    settings: Settings,
    engine: Engine,
    lifecycle: Lifecycle,
    lag: LoopLag,
    registry: CollectorRegistry,
    tracing: Tracing | None,
) -> FastAPI:
    """The pod's HTTP application; it neither loads the engine nor closes it.

    `Pod` awaits its `state.warm_up` while the engine loads; each of `state.watches` runs until the end.

    Args:
        settings: The pod's.
        engine: The engine.
        lifecycle: The pod's phase, which `Pod` sets.
        lag: Of the event loop, for the metrics.
        registry: Of the engine's metrics; the pod's own are added.
        tracing: Of the pod; None: it is off.

    Raises:
        PromptTemplateError: The prompt family cannot be used.
        SettingsError: The directory for glossaries cannot be used.
    """
    bounds = Bounds(
        settings.max_queued_requests,
        settings.max_queued_tokens,
        settings.deadline_aware_admission,
        max_concurrent(settings),
    )
    admission = Admission(bounds, engine, settings.request_timeout_s, file_longest_s=settings.file_timeout_s)
    shortest = ShortestFirst() if settings.scheduling_policy == "shortest" else None
    metrics = Metrics(registry, settings.name, shortest.learn if shortest else None)
    guards = GuardProcess() if _has_guard_process(settings) else None
    translator = translator_of(settings, engine, metrics, guards)
    metrics.watch(lifecycle, admission, engine.stall_detector, lag)
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.state.warm_up = translator.warm_up
    app.state.client_stalled = metrics.stalled.inc
    app.state.watches = [
        lag.watch,
        partial(collect_between_requests, lifecycle),
        *([guards.run] if guards else []),
    ]
    if glossary := translator.glossary:
        metrics.watch_glossary(glossary)
        app.state.watches.append(glossary.watch)
    tolerance = Tolerance(settings.stall_timeout_s, settings.unready_when_overloaded)
    exported = Exposition(registry, lambda: engine.hidden_metrics)
    app.include_router(probe_routes(lifecycle, engine, admission, exported, tolerance))
    glossaries = GlossaryTerms(open_store(settings.glossary_dir, settings.cache_dir))
    app.include_router(router_routes(lifecycle, glossaries.attached))
    answering = Answering(
        translator,
        lifecycle,
        admission,
        Accounting(metrics, tracing, shortest),
        settings.max_body_bytes,
    )
    site = Site(
        offer_of([settings.languages]),
        settings.languages,
        (settings.name,),
        Limits(settings.max_texts, settings.max_body_bytes),
    )
    app.add_middleware(Endpoints, answering=answering, site=site, glossaries=glossaries)
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _last_handler(metrics))
    return app


def _has_guard_process(settings: Settings) -> bool:
    if settings.guard_process is not None:
        return settings.guard_process
    # A model on a CPU uses all of them.
    return settings.device == "cuda" and settings.engine == "vllm" and usable_cpus() >= CPUS_FOR_GUARDS


async def _no_such_route(request: Request, error: Exception) -> Response:
    """404 and 405 in the format of the API that the path is nearest to."""
    if not isinstance(error, HTTPException):
        raise error
    unknown = ApiRequest(
        request.method, request.scope["path"], request.scope["query_string"], request.scope["headers"]
    )
    here = f"nothing here at {unknown.path[:100]!r}"
    cause: RequestError = UnknownPathError(here)
    if error.status_code == HTTP_405_METHOD_NOT_ALLOWED:
        allowed = (error.headers or {}).get("Allow", "").split(", ")
        cause = MethodNotAllowedError(f"{here} with {unknown.method}: use {' or '.join(allowed)}", allowed)
    return response_of(api_of(unknown).error(cause, unknown))


def _last_handler(metrics: Metrics) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Answers an unexpected exception; Starlette raises it again, and the server logs its traceback."""

    async def answer(request: Request, error: Exception) -> Response:
        del error
        metrics.defects.inc()
        failed = ApiRequest(request.method, request.url.path, b"", [])
        return response_of(native.API.error(DefectError("a defect; the pod's log has more"), failed))

    return answer
