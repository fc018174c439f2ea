"""LibreTranslate's routes for files."""

from __future__ import annotations

import asyncio
import mimetypes

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from dragoman_contract.files import MOST_FILE_BYTES
from dragoman_protocols.api import CORS_HEADERS, Answer
from dragoman_protocols.errors import CapacityError
from dragoman_protocols.libretranslate.api import STATUSES
from dragoman_service.dialects import openapi
from dragoman_service.dialects.libretranslate.files import LibreTranslateFiles, respond
from dragoman_service.http.answering import Answering
from dragoman_service.http.endpoints import response_of
from dragoman_service.http.shelf import Shelf

MOST_FILES_AT_ONCE = 8
"""Bounds the memory that files take while they are read and written."""


class LibreTranslateError(BaseModel):
    """Every answer that is no success."""

    error: str


class Translated(BaseModel):
    """Where a translated file waits."""

    translatedFileUrl: str


class SentFile(BaseModel):
    """`/translate_file`, as a form of several parts."""

    file: str = Field(json_schema_extra={"format": "binary"})
    source: str = Field(description='code of the file\'s language, or "auto"')
    target: str = Field(description="code of the translation's language")
    api_key: str = Field("", description="API key, where the router requires one")


def libretranslate_routes(answering: Answering) -> APIRouter:
    """The routes.

    Args:
        answering: See there.
    """
    router = APIRouter(tags=["LibreTranslate"])
    shelf = Shelf()
    unfetched = answering.lifecycle.unfetched
    files = LibreTranslateFiles(answering.translator, shelf, unfetched)
    places = asyncio.Semaphore(MOST_FILES_AT_ONCE)

    @router.post(
        "/translate_file",
        response_model=Translated,
        responses=openapi.errors(LibreTranslateError, STATUSES),
        openapi_extra=openapi.body({"multipart/form-data": SentFile}),
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
        headers = (
            ("Content-Type", media),
            ("Content-Disposition", f"attachment; filename={found.name}"),
            ("X-Content-Type-Options", "nosniff"),
        )
        return response_of(Answer(200, found.content, CORS_HEADERS + headers))

    async def preflight() -> Response:
        return response_of(Answer(200, b"", CORS_HEADERS))

    for path in ("/translate_file", "/download_file/{key}"):
        router.add_api_route(path, preflight, methods=["OPTIONS"], include_in_schema=False)
    return router
