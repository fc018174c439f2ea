"""What the pod requires of an engine, in types of its own."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

from dragoman_protocols.errors import TextTooLongError


class StallDetector:
    """Counts generations, and the time without a step while there are any; used from the event loop alone.

    Time counts while there is work, from the last step on, and only a step resets it: an engine that is stuck while
    its clients disconnect, one after the other, is detected; one that is idle, or whose clients disconnect before it
    can have made a step, is not.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._generating = 0
        self._without_step_s = 0.0
        self._since_s = 0.0

    @property
    def generating(self) -> int:
        """Unfinished generations of the engine, those that wait for a slot included."""
        return self._generating

    @property
    def stalled_s(self) -> float:
        """Seconds without a step while there was work."""
        return self._without_step_s + (self._clock() - self._since_s if self._generating else 0.0)

    @contextmanager
    def generation(self) -> Iterator[None]:
        """Count one generation while the engine has it."""
        if not self._generating:
            self._since_s = self._clock()
        self._generating += 1
        try:
            yield
        finally:
            self._generating -= 1
            if not self._generating:
                self._without_step_s += self._clock() - self._since_s

    def step(self) -> None:
        """The engine has made a step."""
        self._without_step_s = 0.0
        self._since_s = self._clock()


MIN_OUTPUT_TOKENS = 16
"""Room that even the shortest segment's translation gets: a word of one token can become a phrase."""

MAX_EXPANSION_RATIO = 8
"""Maximum output tokens per source token of a translation that is no loop: scripts that a tokenizer knows poorly cost
several times the tokens of English."""


def output_budget(
    prompt_tokens: int,
    segment_tokens: int,
    max_model_len: int,
    max_prompt_tokens: int | None = None,
    max_tokens: int | None = None,
) -> int:
    """Maximum tokens of an output.

    Args:
        prompt_tokens: Tokens of the whole prompt.
        segment_tokens: Tokens of the text within it.
        max_model_len: Tokens that the model holds, prompt and output together.
        max_prompt_tokens: Longest prompt that the model was made for; None: `max_model_len`.
        max_tokens: The request's maximum; None: by the segment's length.

    Returns:
        As many as fit, at most `max_tokens`, or else what a translation of this length plausibly needs.

    Raises:
        TextTooLongError: The prompt is too long, or leaves no room for an output as long as the text.
    """
    if max_prompt_tokens is not None and prompt_tokens > max_prompt_tokens:
        raise TextTooLongError(
            f"the text makes a prompt of {prompt_tokens} tokens, and this model was made for at most "
            f"{max_prompt_tokens}; send it in smaller pieces"
        )
    needed = (
        max(MIN_OUTPUT_TOKENS, segment_tokens) if max_tokens is None else min(MIN_OUTPUT_TOKENS, max_tokens)
    )
    room = max_model_len - prompt_tokens
    if room < needed:
        raise TextTooLongError(
            f"the text makes a prompt of {prompt_tokens} tokens and its translation needs about {needed}, over "
            f"the {max_model_len} that this model holds; send it in smaller pieces"
        )
    if max_tokens is None:
        max_tokens = MIN_OUTPUT_TOKENS * 4 + MAX_EXPANSION_RATIO * segment_tokens
    return min(room, max_tokens)


class Phase(StrEnum):
    """Lifecycle phases of a pod."""

    STARTING = "starting"
    RESOLVING = "resolving"
    DOWNLOADING = "downloading"
    LOADING = "loading"
    COMPILING = "compiling"
    WARMING_UP = "warming-up"
    READY = "ready"
    LEAVING = "leaving"
    """Lame duck: accepts requests, and is not ready."""
    DRAINING = "draining"
    FAILED = "failed"


@dataclass(frozen=True)
class Progress:
    """Progress of a start.

    Args:
        share_ratio: Part of this phase that is done, 0 to 1, or None if unknown.
    """

    phase: Phase
    share_ratio: float | None = None


Report = Callable[[Progress], None]
"""Receives the progress of a start; can be called from any thread."""


class Framing(StrEnum):
    """How an instruction becomes the prompt."""

    CHAT = "chat"
    """As a user's turn in the tokenizer's own chat template, which must exist."""
    CHAT_IF_ANY = "chat-if-any"
    """In the chat template where the tokenizer has one, else as it is."""
    RAW = "raw"
    """As it is, with the special tokens that the tokenizer adds by itself (such as `<s>`)."""


@dataclass(frozen=True)
class Prompt:
    """One instruction to the model.

    Args:
        instruction: The whole user text, the segment within it.
        segment: The text to translate, as it stands in the instruction.
        framing: How the instruction becomes what the model reads.
        template_args: Variables for the chat template.
        turns: Turns before the instruction, each a role (`system`, `user`, `assistant`) and its text;
            only in a chat template.
        quoted: Spans of the instruction that are callers' words, as start and end offsets: special tokens
            in them do not act. None is all of it.
    """

    instruction: str
    segment: str
    framing: Framing = Framing.CHAT
    template_args: dict[str, Any] = field(default_factory=dict)
    turns: tuple[tuple[str, str], ...] = ()
    quoted: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True)
class Decoding:
    """Sampling parameters.

    Args:
        temperature: 0 is greedy.
        top_p: Share of probability to sample from, over 0 to 1.
        top_k: Tokens to sample from; 0 is all.
        repetition_penalty: 1 is none.
        stop: Strings that end the output and are not part of it.
        stop_token_ids: Token ids that do the same, beside the model's own.
        max_tokens: Maximum of the output; None: the engine's choice by the segment.
        max_prompt_tokens: Longest prompt that the model was made for, where that is less than its context.
        stream: Yield text as it is generated rather than once, at the end.
        seed: Makes sampling repeatable; None: random.
        presence_penalty: From -2 to 2; 0 is none.
        frequency_penalty: From -2 to 2; 0 is none.
        stop_on_repetition: End an output that loops, if the engine can.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    stop: tuple[str, ...] = ()
    stop_token_ids: tuple[int, ...] = ()
    max_tokens: int | None = None
    max_prompt_tokens: int | None = None
    stream: bool = False
    seed: int | None = None
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    stop_on_repetition: bool = True


class Finish(StrEnum):
    """Why an output ended."""

    STOP = "stop"
    """The model ended it."""
    LENGTH = "length"
    """It ran into `max_tokens`."""
    REPETITION = "repetition"
    """The engine ended it, because it repeated itself."""


@dataclass(frozen=True)
class Chunk:
    """A piece of output.

    Args:
        text: Generated since the last chunk.
        finish: None on all chunks but the last.
        prompt_tokens: Tokens of the prompt, set on the last chunk.
        output_tokens: Tokens of all the output, set on the last chunk.
    """

    text: str
    finish: Finish | None = None
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True)
class Capacity:
    """Maximum concurrent work of an engine; more is queued.

    Args:
        tokens: Tokens of their prompts and outputs together.
    """

    sequences: int
    tokens: int


@dataclass(frozen=True)
class TokenCounter:
    """Counts tokens as an engine does, also in another process: picklable."""

    max_model_len: int
    count_tokens: Callable[[str], int]


class Engine(Protocol):
    """Generates text for many requests at once."""

    @property
    def capacity(self) -> Capacity:
        """What it runs at once; known once it is loaded."""
        ...

    @property
    def stall_detector(self) -> StallDetector:
        """Its generations, and the time without a step."""
        ...

    @property
    def max_model_len(self) -> int:
        """Tokens of prompt and output together that the model holds; 0 until it is loaded."""
        ...

    @property
    def hidden_metrics(self) -> frozenset[str]:
        """Names of its metric families that would be wrong."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text as it stands in a prompt; quick, and callable from any thread once loaded."""
        ...

    def counter(self) -> TokenCounter | None:
        """Counts as `count_tokens`, once it is loaded; None where its tokenizer stays in this process."""
        ...

    async def load(self, report: Report) -> None:
        """Load the model, reporting each phase; returns once `generate` may be called.

        Raises:
            StartError: With the reason, in one sentence.
        """
        ...

    def generate(
        self,
        prompt: Prompt,
        decoding: Decoding,
        request_id: str,
        *,
        priority: int = 0,
        trace_headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[Chunk]:
        """Answer one prompt; closing the generator aborts it and frees its slot.

        Args:
            prompt: The instruction.
            decoding: How to answer.
            request_id: Unique among those in flight.
            priority: Lower goes first, if the engine schedules by priority; otherwise ignored.
            trace_headers: W3C trace context that the engine's own spans belong to.

        Raises:
            TextTooLongError: Prompt and output do not fit.
            GenerationError: This request failed.
            EngineDeadError: So will all others.
        """
        ...

    async def check(self) -> None:
        """Raise EngineDeadError once the engine has exited."""
        ...

    async def aclose(self) -> None:
        """Stop, also during `load`, and leave no process behind."""
        ...


class SleepableEngine(Engine, Protocol):
    """An engine that can free its device while nothing is generated; `sleeping.SleepingEngine` decides when."""

    async def sleep(self) -> None:
        """Free the device's memory; called while there are no generations. None may start before `wake_up` returns."""
        ...

    async def wake_up(self) -> None:
        """Take the device's memory again; `generate` may be called afterwards."""
        ...
