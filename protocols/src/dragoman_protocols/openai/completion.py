"""Completions, chunks of completions and errors of OpenAI's chat API."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from dragoman_protocols import errors
from dragoman_protocols.chat import End
from dragoman_protocols.errors import ErrorTable, RequestError
from dragoman_protocols.messages import Answer, event, json_answer
from dragoman_protocols.translation import Delta, TranslationResult

DONE = b"data: [DONE]\n\n"

INVALID, UNAVAILABLE = "invalid_request_error", "service_unavailable_error"
NO_MODEL, NO_QUOTA = "model_not_found", "insufficient_quota"

ERRORS: ErrorTable[tuple[int, str, str | None, str | None]] = ErrorTable(
    {
        errors.TextTooLongError: (400, INVALID, "context_length_exceeded", "messages"),
        errors.EmptyTextError: (400, INVALID, None, "messages"),
        errors.BodyTooLargeError: (413, INVALID, None, None),
        errors.MethodNotAllowedError: (405, INVALID, None, None),
        errors.UnknownPathError: (404, INVALID, None, None),
        errors.ModelNotFoundError: (404, INVALID, NO_MODEL, "model"),
        errors.UnknownDeploymentError: (404, INVALID, NO_MODEL, None),
        errors.KeyMissingError: (401, INVALID, None, None),
        errors.KeyRefusedError: (401, INVALID, None, None),
        errors.TokenRefusedError: (401, INVALID, None, None),
        errors.QuotaError: (429, NO_QUOTA, NO_QUOTA, None),
        errors.CallerError: (400, INVALID, None, None),
        errors.RateLimitedError: (429, "rate_limit_error", None, None),
        errors.CapacityError: (503, UNAVAILABLE, None, None),
        errors.EngineDeadError: (503, UNAVAILABLE, None, None),
        errors.DeadlineExceededError: (504, "timeout_error", None, None),
        errors.UpstreamError: (502, "server_error", None, None),
        RequestError: (500, "server_error", None, None),
    }
)
"""Status, type, code (None: the error's own) and param."""


def error_body(error: RequestError) -> dict[str, Any]:
    """`{"error": {"message", "type", "param", "code"}}`."""
    _, kind, code, param = ERRORS[error]
    if isinstance(error, errors.LanguageError):
        param = f"translation_options.{'source_lang' if error.side == 'source' else 'target_lang'}"
    elif isinstance(error, errors.InvalidFieldError):
        param = error.field or None
    return {"error": {"message": str(error), "type": kind, "param": param, "code": code or error.code}}


@dataclass
class Completion:
    """One answer, whole or in chunks.

    Args:
        includes_usage: Whether a stream ends with a count of tokens.
        id: Of the answer.
        created_s: Unix seconds.
    """

    model: str
    includes_usage: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created_s: int = field(default_factory=lambda: int(time.time()))
    _started: bool = False

    def whole(self, text: str, end: End) -> Answer:
        """See `ChatWriter.whole`."""
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": end.finish}
        return json_answer(self._envelope("chat.completion") | {"choices": [choice], "usage": _usage(end)})

    def piece(self, text: str) -> bytes:
        """The events for a piece of the text; the first one has the role too."""
        delta: dict[str, Any] = {"content": text}
        if not self._started:
            self._started = True
            delta = {"role": "assistant"} | delta
        elif not text:
            return b""
        return self._chunk([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}])

    def end(self, end: End) -> bytes:
        """See `ChatWriter.end`."""
        last = self._chunk([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": end.finish}])
        if self.includes_usage:
            last += self._chunk([], usage=_usage(end))
        return last + DONE

    def failed(self, error: RequestError) -> bytes:
        """See `ChatWriter.failed`."""
        return event(error_body(error)) + DONE

    def _chunk(self, choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
        chunk = self._envelope("chat.completion.chunk") | {"choices": choices}
        return event(chunk | {"usage": usage} if self.includes_usage else chunk)

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {"id": self.id, "object": kind, "created": self.created_s, "model": self.model}


@dataclass
class TranslationChunks:
    """A streamed translation in the chunks of a chat."""

    completion: Completion
    result: TranslationResult | None = None

    def delta(self, delta: Delta) -> bytes:
        """See `Events.delta`."""
        self.result = delta.result or self.result
        return self.completion.piece(delta.text)

    def end(self) -> bytes:
        """See `Events.end`."""
        assert self.result is not None
        return self.completion.end(end_of(self.result))

    def failed(self, error: RequestError) -> bytes:
        """See `Events.failed`."""
        return self.completion.failed(error)


def end_of(result: TranslationResult) -> End:
    """The end of a translation: a truncated one is an error."""
    return End("stop", result.prompt_tokens, result.output_tokens)


def _usage(end: End) -> dict[str, int]:
    return {
        "prompt_tokens": end.prompt_tokens,
        "completion_tokens": end.output_tokens,
        "total_tokens": end.prompt_tokens + end.output_tokens,
    }
