"""OpenAI: `/v1/chat/completions` and `/v1/models`; with `translation_options`, as Qwen-MT has them.

The model is the name of a deployment. With options the last message of the user is translated; without them it is a
chat with the model.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.calls import Peek, Reading, Results, Translate, json_of, peek_of
from dragoman_protocols.chat import Chat, Sampling
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import EmptyTextError, InvalidFieldError, RequestError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.languages import AUTO, Codes
from dragoman_protocols.messages import Answer, Request, error_answer, json_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.openai.completion import ERRORS, Completion, TranslationChunks, end_of, error_body
from dragoman_protocols.openai.types import (
    MAX_STOPS,
    ChatRequest,
    ChatText,
    MessageText,
    Role,
    TermPair,
    TranslationOptions,
    TranslationPair,
)
from dragoman_protocols.served import Need, model_not_found
from dragoman_protocols.site import Site
from dragoman_protocols.translation import TranslationRequest

USER = Role.USER.value
"""Compared for each message; an Enum's member takes longer to look up."""

CODES = Codes({}, {}, names=True)

STARTED_S = int(time.time())
"""Answered as the models' time of creation."""


class OpenAI(Api):
    """The API."""

    name = "openai"
    key_headers = (b"api-key",)

    def error(self, error: RequestError, _: Request) -> Answer:
        """See `error_body`."""
        return error_answer(error, ERRORS[error][0], error_body(error))


def find(body: ChatText, offer: Offer) -> Peek:
    """The model; with options the pair and the text."""
    if body.translation_options is None:
        return Peek((), sum(len(_text(message)) for message in body.messages), body.model)
    return peek_of(_need(body.messages, body.translation_options, offer), body.model)


def call(body: ChatRequest, found: Peek, _: Site) -> Translate | Chat:
    """A translation, or a chat."""
    if body.logprobs:
        raise InvalidFieldError("logprobs are not supported", "logprobs")
    if len(body.stops) > MAX_STOPS or not all(body.stops):
        raise InvalidFieldError(f"stop: at most {MAX_STOPS} strings, none of them empty", "stop")
    completion = Completion(body.model, body.includes_usage)
    if body.translation_options is None:
        return Chat(_turns(body), _sampling(body), found.characters, completion, bool(body.stream))
    (need,) = found.needs

    def render(results: Results) -> Answer:
        result = results[0][0]
        return completion.whole(result.text, end_of(result))

    return Translate(
        (_translation(need, body.translation_options),),
        found.characters,
        render,
        TranslationChunks(completion) if body.stream else None,
    )


def respond_models(_: Request, site: Site) -> Answer:
    """All models."""
    return json_answer({"object": "list", "data": [_card(model) for model in site.models]})


def respond_model(request: Request, site: Site) -> Answer:
    """One model by its name."""
    name = request.variables["name"]
    if name not in site.models:
        raise model_not_found(name, site.models)
    return json_answer(_card(name))


def _card(model: str) -> dict[str, Any]:
    return {"id": model, "object": "model", "created": STARTED_S, "owned_by": "dragoman"}


def _text(message: MessageText) -> str:
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(part.text or "" for part in content or ())


def _need(messages: Sequence[MessageText], options: TranslationPair, offer: Offer) -> Need:
    """The pair, and the last message of the user."""
    texts = [_text(message) for message in messages if message.role == USER]
    if not texts:
        raise InvalidFieldError("messages: none has the role user", "messages")
    source = AUTO if options.source_lang is None else options.source_lang
    return Need(
        None if source.lower() == AUTO else CODES.tag(source, offer.listed_sources),
        (CODES.tag(options.target_lang, offer.listed_targets),),
        (texts[-1],),
    )


def _translation(need: Need, options: TranslationOptions) -> TranslationRequest:
    _check_terms("terms", options.terms)
    _check_terms("tm_list", options.tm_list)
    examples = [
        f"Keep to this earlier translation: {each.source!r} became {each.target!r}."
        for each in options.tm_list
    ]
    return TranslationRequest(
        need.texts,
        need.targets[0],
        need.source,
        terms=tuple(Term(term.source, term.target) for term in options.terms),
        instructions=(*([options.domains] if options.domains.strip() else []), *examples),
    )


def _check_terms(field: str, pairs: Sequence[TermPair]) -> None:
    for index, pair in enumerate(pairs):
        if not (pair.source.strip() and pair.target.strip()):
            raise InvalidFieldError(
                f"translation_options.{field}[{index}]: source and target must not be blank",
                f"translation_options.{field}[{index}]",
            )


def _turns(body: ChatRequest) -> tuple[tuple[str, str], ...]:
    """The messages of a chat; chat templates do not know the role `developer`."""
    if body.messages[-1].role != USER:
        raise InvalidFieldError("messages: the last one must have the role user", "messages")
    for at, message in enumerate(body.messages):
        # An assistant's message that called a tool has none.
        if message.content is None and message.role != Role.ASSISTANT:
            path = f"messages[{at}].content"
            raise InvalidFieldError(f"{path} must be a string or a list of parts", path)
    turns = tuple(
        (str(Role.SYSTEM if message.role == Role.DEVELOPER else message.role), _text(message))
        for message in body.messages
    )
    if not turns[-1][1].strip():
        raise EmptyTextError("messages: the last one is empty")
    return turns


def _sampling(body: ChatRequest) -> Sampling:
    return Sampling(
        body.temperature,
        body.top_p,
        body.max_completion_tokens or body.max_tokens,
        body.stops,
        body.seed,
        body.presence_penalty or 0.0,
        body.frequency_penalty or 0.0,
    )


API = OpenAI()
READING = Reading(json_of(ChatText), find, call, json_of(ChatRequest))
_MODELS = "/v1/models"
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        "/v1/chat/completions",
        frozenset({"POST"}),
        reading=READING,
        operation=Operation(
            "With `translation_options`: translate the last user message. Otherwise: chat with the model.",
            {JSON_TYPE: ChatRequest},
            streams=True,
        ),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        _MODELS,
        frozenset({"GET"}),
        respond=respond_models,
        operation=Operation("List the models."),
    ),
    Endpoint(
        API,
        EndpointKind.RESPOND,
        f"{_MODELS}/{{name}}",
        frozenset({"GET"}),
        respond=respond_model,
        operation=Operation("Get one model by its name."),
    ),
)
