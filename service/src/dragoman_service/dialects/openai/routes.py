"""OpenAI's routes."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from dragoman_protocols.errors import RequestError
from dragoman_protocols.events import EVENT_STREAM
from dragoman_service.dialects import openapi
from dragoman_service.dialects.openai.answers import SAID, model_card
from dragoman_service.dialects.openai.dialect import OpenAI
from dragoman_service.dialects.openai.shapes import (
    ChatAnswer,
    ChatRequest,
    Model,
    Models,
    OpenAIErrorResponse,
)
from dragoman_service.http.answering import Answering


def openai_routes(answering: Answering, model: str) -> APIRouter:
    """The routes.

    Args:
        answering: See there.
        model: The name that requests have to ask for.
    """
    router = APIRouter(tags=["OpenAI"])
    dialect = OpenAI(model)
    card = model_card(model, int(time.time()))
    refusals = openapi.errors(OpenAIErrorResponse, SAID)

    @router.post(
        "/v1/chat/completions",
        response_model=ChatAnswer,
        responses={200: {"content": {EVENT_STREAM: {"schema": {"type": "string"}}}}, **refusals},
        openapi_extra=openapi.body({openapi.JSON: ChatRequest}),
    )
    async def chat_completions(request: Request) -> Response:
        """Translate the last message, or chat."""
        return await answering.answer(request, dialect)

    @router.get("/v1/models", response_model=Models)
    async def models() -> Response:
        """The one model that there is."""
        return JSONResponse({"object": "list", "data": [card]})

    @router.get("/v1/models/{name:path}", response_model=Model, responses={404: refusals[404]})
    async def one_model(name: str) -> Response:
        """A model by its name."""
        try:
            dialect.check_model(name)
        except RequestError as error:
            return dialect.refuse(error)
        return JSONResponse(card)

    return router
