"""The routes of `/v2/document`: upload, state, result."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman_contract.files import MOST_FILE_BYTES
from dragoman_contract.routing import CHARACTERS_HEADER
from dragoman_protocols.errors import CapacityError
from dragoman_service.dialects.deepl import schemas
from dragoman_service.dialects.deepl.dialect import DeepL
from dragoman_service.dialects.deepl.documents import MOST_AT_ONCE, Document, Documents, State
from dragoman_service.dialects.deepl.fields import Fields
from dragoman_service.dialects.deepl.glossary_replies import Inform
from dragoman_service.dialects.deepl.uploads import read_document, read_upload
from dragoman_service.http.answering import Answering


def document_routes(answering: Answering, dialect: DeepL, inform: Inform) -> APIRouter:
    """The routes.

    Args:
        answering: See there.
        dialect: Words the errors.
        inform: Reads a request's fields, has the reply made, and words what it raises.
    """
    router = APIRouter(prefix="/v2/document")
    documents = Documents(answering, dialect)
    places = asyncio.Semaphore(MOST_AT_ONCE)
    for_files = replace(answering, max_body_bytes=max(answering.max_body_bytes, MOST_FILE_BYTES))

    @router.post("", openapi_extra=schemas.DOCUMENT)
    async def upload(request: Request) -> Response:
        """Take a document on."""

        async def reply(body: bytes) -> Response:
            uploaded = await read_upload(request, body)
            file, asked = await asyncio.to_thread(read_document, uploaded, dialect.served)
            wanted = await dialect.with_terms(asked, request.headers)
            begun = await documents.begin(uploaded.name, file, asked, wanted, request.headers)
            return JSONResponse(
                {"document_id": begun.document_id, "document_key": begun.document_key}, headers=charge(begun)
            )

        if places.locked() or documents.full:
            return dialect.refuse(CapacityError(f"{MOST_AT_ONCE} documents are being translated"))
        async with places:
            return await for_files.inform(request, dialect, reply)

    @router.post("/{document_id}", openapi_extra=schemas.DOCUMENT_KEY)
    async def state(request: Request, document_id: str) -> Response:
        """Tell how far a document is."""

        async def reply(_: Request, fields: Fields) -> Response:
            found = documents.find(document_id, fields.required("document_key"))
            return JSONResponse(state_json(found), headers=charge(found))

        return await inform(request, reply)

    @router.post("/{document_id}/result", response_class=Response, openapi_extra=schemas.DOCUMENT_KEY)
    async def result(request: Request, document_id: str) -> Response:
        """Hand out a translated document, once."""

        async def reply(_: Request, fields: Fields) -> Response:
            taken = documents.take(document_id, fields.required("document_key"))
            return Response(taken.content, media_type="application/octet-stream")

        return await inform(request, reply)

    return router


def charge(document: Document) -> dict[str, str]:
    """What an answer charges for a document: its upload for all characters; a failure takes them back once."""
    due = 0 if document.state is State.ERROR else document.characters
    change, document.charged = due - document.charged, due
    return {CHARACTERS_HEADER: str(change)} if change else {}


def state_json(document: Document) -> dict[str, Any]:
    """The body of `/v2/document/{document_id}`."""
    told: dict[str, Any] = {"document_id": document.document_id, "status": document.state}
    if document.state is State.DONE:
        told["billed_characters"] = document.characters
    if document.state is State.ERROR:
        told["message"] = told["error_message"] = document.error
    return told
