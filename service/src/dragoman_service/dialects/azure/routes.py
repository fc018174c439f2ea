"""Azure's routes: on paths that other APIs have too, told apart by the `api-version` that its clients send."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from pydantic import Field
from starlette.routing import Match
from starlette.types import Scope

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_service.dialects.azure import info
from dragoman_service.dialects.azure.dialect import MOST_ITEMS, azure
from dragoman_service.dialects.azure.errors import STATUSES
from dragoman_service.dialects.azure.shapes import (
    AzureErrorResponse,
    DetectedItem,
    Inputs,
    Item,
    LanguagesAnswer,
    TextType,
    TranslatedItem,
    TranslatedItems,
)
from dragoman_service.dialects.openapi import JSON, body, errors, query
from dragoman_service.http.answering import Answering

KEY_HEADER = b"ocp-apim-subscription-key"


class AzureRoute(APIRoute):
    """A route that is there for Azure's clients alone."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See the module."""
        if scope["type"] == "http" and _is_azures(scope):
            return super().matches(scope)
        return Match.NONE, {}


def _is_azures(scope: Scope) -> bool:
    parameters = scope["query_string"].split(b"&")
    return any(each.startswith(b"api-version=") for each in parameters) or any(
        name == KEY_HEADER for name, _ in scope["headers"]
    )


VERSION = query("api-version", {"type": "string", "enum": ["3.0", "2026-06-06"]}, "marks Azure's API")
TRANSLATE = body({JSON: Annotated[list[Item], Field(max_length=MOST_ITEMS)] | Inputs}) | {
    "parameters": [
        VERSION,
        query("to", {"type": "array", "items": {"type": "string"}}, "languages to translate into (3.0)"),
        query("from", {"type": "string"}, "the texts' language (3.0); left out: detected"),
        query("textType", {"type": "string", "enum": [each.value for each in TextType]}, "(3.0)"),
    ]
}
DETECT = body({JSON: Annotated[list[Item], Field(max_length=MOST_ITEMS)]}) | {"parameters": [VERSION]}
LANGUAGES = {
    "parameters": [
        VERSION,
        query(
            "scope", {"type": "string"}, "translation, transliteration, dictionary (3.0), models (2026-06-06)"
        ),
    ]
}


def azure_routes(answering: Answering, model: str) -> APIRouter:
    """The routes; they come before those of other APIs on the same paths.

    Args:
        answering: See there.
        model: Name of what translates.
    """
    router = APIRouter(route_class=AzureRoute, tags=["Azure"])
    refusals = errors(AzureErrorResponse, STATUSES)

    @router.post(
        TRANSLATE_PATH,
        response_model=list[TranslatedItem] | TranslatedItems,
        responses=refusals,
        openapi_extra=TRANSLATE,
    )
    async def azure_translate(request: Request) -> Response:
        """Translate texts into several languages."""
        return await answering.answer(request, azure(request, answering.max_texts))

    @router.post("/detect", response_model=list[DetectedItem], responses=refusals, openapi_extra=DETECT)
    async def azure_detect(request: Request) -> Response:
        """Tell the languages of texts."""
        return await info.detection(answering, request)

    @router.get("/languages", response_model=LanguagesAnswer, responses=refusals, openapi_extra=LANGUAGES)
    async def azure_languages(request: Request) -> Response:
        """List the languages."""
        return await info.languages(answering, request, model)

    return router
