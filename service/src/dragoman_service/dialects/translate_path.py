"""`POST /translate`, which more than one API has: told apart by what a request looks like."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_service.dialects import native, openapi
from dragoman_service.dialects.libretranslate.dialect import LibreTranslate, Limits, speaks
from dragoman_service.dialects.libretranslate.shapes import (
    LibreTranslateError,
    LibreTranslateRequest,
    LibreTranslateResponse,
)
from dragoman_service.http.answering import Answering
from dragoman_service.http.work import Dialect


def translate_routes(answering: Answering) -> APIRouter:
    """The route.

    Args:
        answering: See there.
    """
    router = APIRouter(tags=["native", "LibreTranslate"])
    ours = native.Native(answering.max_texts)
    libretranslate = LibreTranslate(Limits(answering.max_body_bytes, answering.max_texts))

    def choose(request: Request, body: bytes) -> Dialect:
        return libretranslate if speaks(request, body) else ours

    @router.post(
        TRANSLATE_PATH,
        response_model=native.TranslateResponse | LibreTranslateResponse,
        responses={
            200: {"content": native.EVENT_CONTENT},
            **openapi.errors(native.ErrorResponse | LibreTranslateError, native.codes_by_status()),
        },
        openapi_extra=openapi.body(
            {
                openapi.JSON: native.TranslateRequest | LibreTranslateRequest,
                openapi.FORM: LibreTranslateRequest,
            },
            required=False,
        ),
    )
    async def translate(request: Request) -> Response:
        """Translate one text or several; told apart by `text` or `q`."""
        return await answering.translate(request, choose)

    return router
