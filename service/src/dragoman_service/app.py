"""The application: the core, the probes and the dialects put together."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request, Response
from prometheus_client import CollectorRegistry
from starlette.exceptions import HTTPException

from dragoman_service.dialects import native
from dragoman_service.engine.protocol import Engine
from dragoman_service.errors import ServiceError
from dragoman_service.lifecycle import Lifecycle
from dragoman_service.metrics import Metrics
from dragoman_service.probes import probe_routes
from dragoman_service.prompts import prompt_family
from dragoman_service.settings import Settings
from dragoman_service.translate import Translator

log = logging.getLogger(__name__)


def create_app(
    settings: Settings, engine: Engine, lifecycle: Lifecycle, registry: CollectorRegistry
) -> FastAPI:
    """The pod's HTTP application; it neither loads the engine nor closes it.

    Args:
        settings: What is served, and within which limits.
        engine: What generates.
        lifecycle: Tells whether requests are taken; driven by whoever runs the application.
        registry: Where the engine keeps its metrics, and the pod its own.

    Raises:
        PromptTemplateError: The prompt family cannot be used.
    """
    translator = Translator(
        engine=engine,
        family=prompt_family(settings.prompt_family, settings.prompt_template),
        languages=settings.languages,
        timeout_s=settings.request_timeout_s,
    )
    metrics = Metrics(registry, lifecycle, settings.name)
    app = FastAPI(title="Dragoman engine pod", docs_url=None, redoc_url=None)
    app.include_router(probe_routes(lifecycle, engine, registry))
    app.include_router(
        native.native_routes(
            translator,
            lifecycle,
            metrics,
            max_body_bytes=settings.max_body_bytes,
            max_texts=settings.max_texts,
        )
    )
    app.add_exception_handler(HTTPException, _no_such_route)
    app.add_exception_handler(Exception, _unforeseen)
    return app


async def _no_such_route(request: Request, error: Exception) -> Response:
    """404 and 405 in the shape of all other errors."""
    if not isinstance(error, HTTPException):
        raise error
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "bad_request")
    return native.error_body(code, f"{request.method} {request.url.path}: {error.detail}", error.status_code)


async def _unforeseen(request: Request, error: Exception) -> Response:
    """A defect: its traceback is logged by the server, its caller learns only that it is one."""
    del request
    log.error("unforeseen error: %s", type(error).__name__)
    return native.render_error(ServiceError("an unforeseen error; the pod's log has more"))
