"""LibreTranslate's routes but for `/translate`, which is shared."""

from __future__ import annotations

import asyncio
import mimetypes

from fastapi import APIRouter, Request, Response

from dragoman_contract.files import MOST_FILE_BYTES
from dragoman_contract.http import TRANSLATE_PATH
from dragoman_protocols.detection import detect
from dragoman_protocols.errors import CapacityError
from dragoman_protocols.offer import offer_of
from dragoman_service.dialects import openapi
from dragoman_service.dialects.libretranslate.dialect import CORS, LibreTranslate, Limits, respond
from dragoman_service.dialects.libretranslate.fields import MULTIPART, read_fields
from dragoman_service.dialects.libretranslate.files import LibreTranslateFiles
from dragoman_service.dialects.libretranslate.information import asked_text, detections, listed, settings_of
from dragoman_service.dialects.libretranslate.shapes import (
    ERRORS,
    Detected,
    DetectRequest,
    LibreTranslateError,
    Listed,
    SentFile,
    Translated,
)
from dragoman_service.engine.protocol import Phase
from dragoman_service.http.answering import Answering
from dragoman_service.http.shelf import Shelf
from dragoman_service.http.work import in_thread_if_long

MOST_FILES_AT_ONCE = 8
"""Bounds the memory that files take while they are read and written."""

PATHS = (
    TRANSLATE_PATH,
    "/translate_file",
    "/download_file/{key}",
    "/detect",
    "/languages",
    "/frontend/settings",
    "/health",
    "/suggest",
)


def libretranslate_routes(answering: Answering) -> APIRouter:
    """The routes.

    Args:
        answering: See there.
    """
    router = APIRouter(tags=["LibreTranslate"])
    dialect = LibreTranslate(Limits(answering.max_body_bytes, answering.max_texts))
    shelf = Shelf()
    unfetched = answering.lifecycle.unfetched
    files = LibreTranslateFiles(answering.translator, shelf, unfetched)
    refusals = openapi.errors(LibreTranslateError, ERRORS)
    places = asyncio.Semaphore(MOST_FILES_AT_ONCE)
    offer = offer_of([answering.translator.languages])
    languages = listed(offer)

    @router.post(
        "/detect",
        response_model=list[Detected],
        responses=refusals,
        openapi_extra=openapi.body(
            {openapi.JSON: DetectRequest, openapi.FORM: DetectRequest}, required=False
        ),
    )
    async def detect_language(request: Request) -> Response:
        """Tell the language of a text."""

        async def reply(body: bytes) -> Response:
            text = await in_thread_if_long(len(body), lambda: asked_text(read_fields(request, body)))
            return respond(detections(await asyncio.to_thread(detect, text, offer.sources)))

        return await answering.inform(request, dialect, reply)

    @router.get("/languages", response_model=list[Listed])
    @router.post("/languages", include_in_schema=False)
    async def list_languages() -> Response:
        """List source languages with their targets; argostranslate asks with POST."""
        return respond(languages)

    @router.get("/frontend/settings")
    async def settings() -> Response:
        """Tell what a page in front of this may do."""
        return respond(settings_of(dialect.limits, offer))

    @router.get("/health", responses=openapi.errors(LibreTranslateError, {503: ERRORS[503]}))
    async def health() -> Response:
        """Tell whether requests are taken."""
        phase = answering.lifecycle.phase
        if phase is Phase.READY:
            return respond({"status": "ok"})
        return respond({"error": f"not ready (phase: {phase})"}, 503)

    @router.post("/suggest", status_code=403)
    async def suggest() -> Response:
        """Refuse: there is nobody to read suggestions."""
        return respond({"error": "Suggestions are disabled on this server."}, 403)

    @router.post(
        "/translate_file",
        response_model=Translated,
        responses=refusals,
        openapi_extra=openapi.body({MULTIPART.decode(): SentFile}),
    )
    async def translate_file(request: Request) -> Response:
        """Translate a file and tell where to fetch it."""
        if places.locked():
            return files.refuse(CapacityError(f"{MOST_FILES_AT_ONCE} files are being translated"))
        async with places:
            return await answering.answer(request, files, max(answering.max_body_bytes, MOST_FILE_BYTES))

    @router.get(
        "/download_file/{key}",
        response_class=Response,
        responses=openapi.errors(LibreTranslateError, {404: "there is no such file, or no longer"}),
    )
    async def download_file(key: str) -> Response:
        """Fetch a translated file, while it is kept."""
        found = shelf.get(key)
        if found is None:
            return respond({"error": "no such file; translated files are kept for half an hour"}, 404)
        unfetched.fetched(key)
        media = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
        headers = {
            "Content-Disposition": f"attachment; filename={found.name}",
            "X-Content-Type-Options": "nosniff",
        }
        return Response(found.content, media_type=media, headers={**CORS, **headers})

    async def preflight() -> Response:
        return Response(headers={**CORS, "Allow": "GET, POST, OPTIONS"})

    for path in PATHS:
        router.add_api_route(path, preflight, methods=["OPTIONS"], include_in_schema=False)
    return router
