"""OpenAI: `/v1/chat/completions` and `/v1/models`; with `translation_options`, as Qwen-MT has them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import langcodes
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dragoman_contract.languages import is_tag
from dragoman_protocols.api import Results
from dragoman_protocols.errors import InvalidFieldError, RequestError, UnknownLanguageError
from dragoman_protocols.glossaries.matching import Term
from dragoman_protocols.translation import Delta, TranslationRequest, TranslationResult
from dragoman_service.dialects.bodies import read_json
from dragoman_service.dialects.headers import headers_for
from dragoman_service.dialects.openai.answers import (
    Completion,
    ModelNotFoundError,
    error_body,
    status_of,
)
from dragoman_service.dialects.openai.chat import Chat
from dragoman_service.dialects.openai.shapes import (
    MOST_STOPS,
    ChatRequest,
    TranslationOptions,
)
from dragoman_service.http.work import Call, Work

AUTO = "auto"

MOST_NAME_CHARS = 100
"""Of a language. The longest name in English has 60; looking one up takes time quadratic in its length."""


def tag_of(name: str) -> str:
    """The BCP-47 tag of a language.

    Args:
        name: The tag itself, or the language's English name: `Traditional Chinese`.

    Raises:
        UnknownLanguageError: It is neither, or too long.
    """
    if is_tag(name):
        return name
    if len(name) > MOST_NAME_CHARS:
        raise UnknownLanguageError(
            f"the name of a language has at most {MOST_NAME_CHARS} characters; {name[:40]!r}… has {len(name)}"
        )
    # NUL separates keys and values in langcodes' data, which reads beyond their ends then.
    if "\0" not in name:
        with suppress(LookupError, UnicodeEncodeError):
            return str(langcodes.find(name))
    raise UnknownLanguageError(f'{name[:40]!r} is no language; name it in English, or as BCP-47 such as "de"')


def wanted(asked: ChatRequest, options: TranslationOptions) -> TranslationRequest:
    """What the core is asked for: the last message of the user's, translated.

    Args:
        asked: The request.
        options: Its `translation_options`.

    Raises:
        CallerError: There is no message of the user's, or no such language.
    """
    texts = [message.text for message in asked.messages if message.role == "user"]
    if not texts:
        raise InvalidFieldError("messages: none has the role user")
    examples = [
        f"Keep to this earlier translation: {each.source!r} became {each.target!r}."
        for each in options.tm_list
    ]
    return TranslationRequest(
        (texts[-1],),
        tag_of(options.target_lang),
        None if options.source_lang.lower() == AUTO else tag_of(options.source_lang),
        terms=tuple(Term(term.source, term.target) for term in options.terms),
        instructions=(*([options.domains] if options.domains.strip() else []), *examples),
    )


@dataclass
class TranslationChunks:
    """A streamed translation in the chunks of a chat.

    Args:
        completion: Writes them.
    """

    completion: Completion
    result: TranslationResult | None = None

    def delta(self, delta: Delta) -> bytes:
        """What came of the text."""
        self.result = delta.result or self.result
        return self.completion.piece(delta.text)

    def end(self) -> bytes:
        """Why it ended, and the count of tokens."""
        assert self.result is not None
        return self.completion.end("stop", self.result.prompt_tokens, self.result.output_tokens)

    def failed(self, error: RequestError) -> bytes:
        """See `Completion.failed`."""
        return self.completion.failed(error)


@dataclass(frozen=True)
class OpenAI:
    """The dialect.

    Args:
        model: The name that requests have to ask for.
    """

    model: str
    name: str = "openai"

    def read(self, request: Request, body: bytes) -> Work:
        """A translation, or a chat."""
        del request
        asked = read_json(body, ChatRequest)
        self.check_model(asked.model)
        if len(asked.stops) > MOST_STOPS or not all(asked.stops):
            raise InvalidFieldError(f"stop: at most {MOST_STOPS} strings, none of them empty")
        completion = Completion(self.model, asked.counts)
        if asked.translation_options is None:
            return Chat(asked, completion)

        def render(results: Results) -> Response:
            result = results[0][0]
            tokens = result.prompt_tokens, result.output_tokens
            return JSONResponse(completion.whole(result.text, "stop", *tokens))

        events = TranslationChunks(completion) if asked.stream else None
        return Call((wanted(asked, asked.translation_options),), render, events)

    def check_model(self, model: str) -> None:
        """Refuse any other model than the pod's.

        Raises:
            ModelNotFoundError: It is another.
        """
        if model != self.model:
            raise ModelNotFoundError(f"no model {model[:100]!r} here; there is {self.model!r}")

    def refuse(self, error: RequestError) -> Response:
        """`{"error": {"message", "type", "param", "code"}}`."""
        return JSONResponse(error_body(error), status_of(error), headers_for(error))
