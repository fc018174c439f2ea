"""A call for a chat: the model answers, without translation and without the guards of translations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from dragoman_protocols.errors import RequestError
from dragoman_protocols.messages import Answer


@dataclass(frozen=True, slots=True)
class Sampling:
    """How the client wants tokens to be chosen; None: the default of the model's publisher.

    Args:
        temperature: 0 is greedy.
        top_p: Share of probability to sample from.
        max_tokens: Of the answer; None: until the model ends it.
        stop: Strings that end the answer, beside the publisher's.
        seed: Makes sampling repeatable.
        presence_penalty: From -2 to 2; 0 is none.
        frequency_penalty: From -2 to 2; 0 is none.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0


class End(NamedTuple):
    """What is known at the end of a generation.

    Args:
        finish: `length`: it reached its maximum of tokens.
        prompt_tokens: Tokens that the model read.
        output_tokens: Tokens that it generated.
    """

    finish: Literal["stop", "length"]
    prompt_tokens: int
    output_tokens: int


class ChatWriter(Protocol):
    """Writes the answer of a chat in an API's format, whole or as events."""

    def whole(self, text: str, end: End) -> Answer:
        """The answer of a request that does not stream."""
        ...

    def piece(self, text: str) -> bytes:
        """The events for a piece of the text."""
        ...

    def end(self, end: End) -> bytes:
        """The events after the last piece."""
        ...

    def failed(self, error: RequestError) -> bytes:
        """The last events of an answer that cannot be finished."""
        ...


@dataclass(frozen=True, slots=True)
class Chat:
    """A call for the model's answer to messages.

    Args:
        turns: Role (`system`, `user`, `assistant`) and text of each message; the last one is the user's.
        characters: What it is charged for: all messages, as the model reads all of them.
        stream: Whether the answer is to be streamed.
    """

    turns: tuple[tuple[str, str], ...]
    sampling: Sampling
    characters: int
    writer: ChatWriter
    stream: bool = False
