"""OpenAI's chat completions, with `translation_options` as Qwen-MT takes them.

The model is the name of a deployment; where there is a pair too, that deployment has to serve it.
Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

import time

import msgspec

from dragoman_protocols import errors
from dragoman_protocols.api import Answer, Peek, Request, Site
from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import CallerError, CapacityError, InvalidFieldError, RequestError, headers_of
from dragoman_protocols.native import ERRORS as STATUSES
from dragoman_router.dialects.asking import answer, peeked, source_tag, tag
from dragoman_router.dialects.names import named

LONGEST_NAME = 64
"""Of a language, in characters: looking one up costs the square of its length."""


class Part(msgspec.Struct):
    """One part of a message."""

    text: str | None = None


class Message(msgspec.Struct):
    """One message."""

    role: str = ""
    content: str | list[Part] | None = None


class Options(msgspec.Struct):
    """The languages."""

    source_lang: str | None = None
    target_lang: str | None = None


class Body(msgspec.Struct):
    """Fields of the body."""

    model: str = ""
    messages: list[Message] = []
    translation_options: Options | None = None


DECODER = msgspec.json.Decoder(Body)


class OpenAI:
    """OpenAI's API."""

    name = "openai"
    key_field: str | None = None

    def read(self, request: Request) -> Peek:
        """The model, and the pair where the options name one."""
        body = read_json(request.body, DECODER)
        if not body.model:
            raise InvalidFieldError("you must provide a model parameter")
        options = body.translation_options
        if options is None or not options.target_lang:
            # The model reads messages of all roles for the answer.
            return peeked(texts=tuple(map(_text, body.messages)), model=body.model)
        texts = tuple(_text(message) for message in body.messages if message.role == "user")
        return peeked(
            targets=(tag(_code(options.target_lang), "translation_options.target_lang"),),
            source=source_tag(_code(options.source_lang), "translation_options.source_lang"),
            texts=texts[-1:],
            model=body.model,
        )

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"message", "type", "param", "code"}}`."""
        status = STATUSES[error]
        if isinstance(error, errors.KeyRefusedError):
            status = 401
        elif isinstance(error, CallerError) and status == 422:
            status = 400
        kind = "invalid_request_error"
        if isinstance(error, CapacityError):
            kind = "rate_limit_error" if status == 429 else "server_error"
        elif not isinstance(error, CallerError):
            kind = "server_error"
        code = "model_not_found" if isinstance(error, errors.UnknownDeploymentError) else error.code
        document = {"error": {"message": str(error), "type": kind, "param": None, "code": code}}
        return answer(status, document, headers_of(error))

    def languages(self, _: Request, site: Site) -> Answer:
        """`GET /v1/models`."""
        models = [
            {"id": name, "object": "model", "created": int(time.time()), "owned_by": "dragoman"}
            for name in site.models
        ]
        return answer(200, {"object": "list", "data": models})


def _text(message: Message) -> str:
    if isinstance(message.content, list):
        return "".join(part.text for part in message.content if part.text)
    return message.content or ""


def _code(language: str | None) -> str | None:
    """A tag for a language that is named in English, as Qwen-MT allows: `Chinese`."""
    if (
        language is None
        or not 3 < len(language) <= LONGEST_NAME
        or "-" in language
        or language.lower() == "auto"
    ):
        return language
    return named(language) or language
