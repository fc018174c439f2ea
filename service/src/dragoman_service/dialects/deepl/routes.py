"""The routes of DeepL's API v2 and of its glossaries of v3."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman_service.dialects.deepl import codes, errors, schemas
from dragoman_service.dialects.deepl.dialect import DeepL
from dragoman_service.dialects.deepl.document_routes import document_routes
from dragoman_service.dialects.deepl.fields import Fields, bound_query, fields_of
from dragoman_service.dialects.deepl.glossary_replies import Reply
from dragoman_service.dialects.deepl.glossary_routes import glossary_routes
from dragoman_service.http.answering import Answering
from dragoman_service.http.work import in_thread_if_long

MOST_BODY_BYTES = 128 * 1024
"""DeepL's own bound for `/v2/translate`. Source: https://developers.deepl.com/api-reference/translate"""

UNKNOWN = ("/v2/{rest:path}", "/v3/{rest:path}")
ANY_METHOD = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]


def deepl_routes(answering: Answering, dialect: DeepL) -> APIRouter:
    """All routes.

    Args:
        answering: See there.
        dialect: With the store of the glossaries.
    """
    router = APIRouter(tags=["DeepL"], responses=schemas.ERRORS)

    async def inform(request: Request, reply: Reply) -> Response:
        async def replied(body: bytes) -> Response:
            bound_query(request)
            fields = await in_thread_if_long(len(body), lambda: fields_of(request, body))
            return await reply(request, fields)

        return await answering.inform(request, dialect, replied)

    @router.post("/v2/translate", openapi_extra=schemas.TRANSLATE)
    async def translate(request: Request) -> Response:
        """Translate texts."""
        return await answering.answer(request, dialect, min(answering.max_body_bytes, MOST_BODY_BYTES))

    @router.get("/v2/languages", openapi_extra=schemas.LANGUAGES)
    async def languages(request: Request) -> Response:
        """List what can be translated; `type` is source or target, in the address or a form."""
        return await inform(request, listed)

    @router.get("/v2/usage")
    async def usage(request: Request) -> Response:
        """Tell how many characters were translated since the pod began."""
        return await inform(request, used)

    @router.get("/v2/glossary-language-pairs")
    async def glossary_language_pairs(request: Request) -> Response:
        """List the pairs that glossaries can be made for."""
        return await inform(request, paired)

    async def listed(request: Request, fields: Fields) -> Response:
        del request
        asked = fields.choice("type", ("source", "target"))
        list_of = codes.targets if asked == "target" else codes.sources
        return JSONResponse(list_of(dialect.served))

    async def used(request: Request, fields: Fields) -> Response:
        del request, fields
        return JSONResponse(dialect.usage.answer())

    async def paired(request: Request, fields: Fields) -> Response:
        del request, fields
        return JSONResponse({"supported_languages": codes.glossary_pairs(dialect.served)})

    router.include_router(glossary_routes(inform, dialect.store))
    router.include_router(document_routes(answering, dialect, inform))

    async def unknown(request: Request) -> Response:
        return errors.refuse(errors.NotServedError(f"{request.method} {request.url.path} is not served here"))

    for path in UNKNOWN:
        router.add_api_route(path, unknown, methods=ANY_METHOD, include_in_schema=False)
    return router
