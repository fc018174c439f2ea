"""What OpenAI's chat API answers: completions, chunks and errors."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from dragoman_protocols.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    EngineDeadError,
    RequestError,
    TextTooLongError,
)
from dragoman_protocols.events import event

DONE = b"data: [DONE]\n\n"

STATUSES: tuple[tuple[type[RequestError], int, str], ...] = (
    (BodyTooLargeError, 413, "invalid_request_error"),
    (CallerError, 400, "invalid_request_error"),
    (CapacityError, 503, "service_unavailable_error"),
    (EngineDeadError, 503, "service_unavailable_error"),
    (DeadlineExceededError, 504, "timeout_error"),
    (RequestError, 500, "server_error"),
)
"""The first class that fits an error gives its status and its type."""

SAID = {
    400: "a field or a language is wrong, or the texts are too long (context_length_exceeded)",
    404: "model_not_found",
    413: "body_too_large",
    500: "the model did not answer",
    503: "loading, draining or overloaded; with Retry-After",
    504: "not finished in time",
}


class ModelNotFoundError(CallerError):
    """The model is not the one that this pod serves."""

    code = "model_not_found"


def status_of(error: RequestError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, ModelNotFoundError):
        return 404
    return next(status for cause, status, _ in STATUSES if isinstance(error, cause))


def error_body(error: RequestError) -> dict[str, Any]:
    """The one shape of errors."""
    kind = next(kind for cause, _, kind in STATUSES if isinstance(error, cause))
    code, param = error.code, None
    if isinstance(error, ModelNotFoundError):
        param = "model"
    if isinstance(error, TextTooLongError):
        code, param = "context_length_exceeded", "messages"
    return {"error": {"message": str(error), "type": kind, "param": param, "code": code}}


def model_card(model: str, created_s: int) -> dict[str, Any]:
    """A model as lists of models have it.

    Args:
        model: Its name.
        created_s: When it began to be served, in Unix seconds.
    """
    return {"id": model, "object": "model", "created": created_s, "owned_by": "dragoman"}


@dataclass
class Completion:
    """One answer, whole or in chunks.

    Args:
        model: What is answered as its model.
        counts: Whether a stream ends with a count of tokens.
        id: Of the answer.
        created_s: When, in Unix seconds.
    """

    model: str
    counts: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created_s: int = field(default_factory=lambda: int(time.time()))
    _begun: bool = False

    def whole(self, text: str, finish: str, prompt_tokens: int, output_tokens: int) -> dict[str, Any]:
        """The answer of a request that does not stream."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return self._envelope("chat.completion") | {
            "choices": [choice],
            "usage": _usage(prompt_tokens, output_tokens),
        }

    def piece(self, text: str) -> bytes:
        """The events for more of the text; the first also says who speaks."""
        delta: dict[str, Any] = {"content": text}
        if not self._begun:
            self._begun = True
            delta = {"role": "assistant"} | delta
        elif not text:
            return b""
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def end(self, finish: str, prompt_tokens: int, output_tokens: int) -> bytes:
        """The events after the last text."""
        last = self._chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": finish}])
        if self.counts:
            last += self._chunk([], usage=_usage(prompt_tokens, output_tokens))
        return last + DONE

    def failed(self, error: RequestError) -> bytes:
        """The events of an answer that cannot be finished."""
        return event(error_body(error)) + DONE

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        chunk = self._envelope("chat.completion.chunk") | {"choices": choices}
        return event(chunk | {"usage": usage} if self.counts else chunk)

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}


def _usage(prompt_tokens: int, output_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
    }
