"""Google's routes."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman_protocols.offer import offered
from dragoman_service.dialects.google.dialect import PATH, SAID, Google, detections, languages, parameters
from dragoman_service.dialects.google.shapes import (
    Detection,
    DetectionAnswer,
    GoogleErrorResponse,
    LanguagesAnswer,
    Translation,
    TranslationAnswer,
)
from dragoman_service.dialects.openapi import FORM, JSON, errors, in_query, query
from dragoman_service.dialects.openapi import body as body_of
from dragoman_service.dialects.queries import bound_fields
from dragoman_service.http.answering import Answering


def google_routes(answering: Answering) -> APIRouter:
    """The routes.

    Args:
        answering: See there.
    """
    router = APIRouter(tags=["Google"])
    known = offered(answering.translator.languages).all_languages
    dialect = Google(known, answering.max_texts)
    refusals = errors(GoogleErrorResponse, SAID)

    async def translate(request: Request) -> Response:
        """Translate up to 128 texts."""
        return await answering.answer(request, dialect)

    async def detected(request: Request) -> Response:
        """Tell which language texts are in."""

        async def reply(body: bytes) -> Response:
            return JSONResponse(
                await asyncio.to_thread(
                    lambda: detections(parameters(request, body, Detection, answering.max_texts))
                )
            )

        return await answering.inform(request, dialect, reply)

    async def listed(request: Request) -> Response:
        """List the languages, with their names where `target` says in which language."""

        async def reply(body: bytes) -> Response:
            del body
            bound_fields(request)
            target = request.query_params.get("target")
            return JSONResponse(await asyncio.to_thread(languages, known, target))

        return await answering.inform(request, dialect, reply)

    for path, handler, shape, answer in (
        (PATH, translate, Translation, TranslationAnswer),
        (f"{PATH}/detect", detected, Detection, DetectionAnswer),
    ):
        contents = {JSON: shape, FORM: shape}
        for method, extra in (("POST", body_of(contents, required=False)), ("GET", in_query(shape))):
            router.add_api_route(
                path,
                handler,
                methods=[method],
                response_model=answer,
                responses=refusals,
                openapi_extra=extra,
            )
    names = {"parameters": [query("target", {"type": "string"}, "code of the language that names are in")]}
    path = f"{PATH}/languages"
    router.get(path, response_model=LanguagesAnswer, responses=refusals, openapi_extra=names)(listed)
    return router
