"""What OpenAI's chat API reads, as far as it is served here.

Sources: https://platform.openai.com/docs/api-reference/chat/create, and for `translation_options`
https://www.alibabacloud.com/help/en/model-studio/machine-translation (Qwen-MT).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from dragoman_protocols.glossaries.matching import MAX_TERM_CHARS

MAX_STOPS = 16

Positive = Annotated[int, Meta(ge=1)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TermText = Annotated[str, Meta(min_length=1, max_length=MAX_TERM_CHARS)]


class Role(StrEnum):
    """Author of a message."""

    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"


class PartText(Struct):
    """What a router reads of a `ContentPart`."""

    text: str | None = None


class ContentPart(PartText):
    """A part of a message; only text is supported."""

    type: Literal["text"]
    text: str


class MessageText(Struct):
    """What a router reads of a `Message`."""

    role: str | None = None
    content: str | Sequence[PartText] | None = None


class Message(MessageText):
    """One message of a chat."""

    role: Role
    content: str | list[ContentPart] | None = None


class TermPair(Struct):
    """A text and its translation."""

    source: TermText
    target: TermText


class TranslationPair(Struct):
    """What a router reads of `TranslationOptions`."""

    target_lang: str
    source_lang: str | None = None


class TranslationOptions(TranslationPair, forbid_unknown_fields=True):
    """Makes the last message a text to translate."""

    target_lang: Annotated[str, Meta(min_length=1, description="English name or BCP-47 tag of the language")]
    source_lang: Annotated[str, Meta(description="the same for the text's language; auto: detected")] = "auto"
    terms: Annotated[list[TermPair], Meta(description="glossary of this request")] = []
    tm_list: Annotated[list[TermPair], Meta(description="earlier translations to follow")] = []
    domains: Annotated[str, Meta(description="subject and style of the text, in words")] = ""


class StreamOptions(Struct):
    """How to stream."""

    include_usage: Annotated[bool, Meta(description="end with a chunk that counts tokens")] = False


class ResponseFormat(Struct):
    """Format of the answer; only text is supported."""

    type: Literal["text"]


class ChatText(Struct):
    """What a router reads of the body of `POST /v1/chat/completions`."""

    model: Annotated[str, Meta(description="name of the deployment")]
    messages: Sequence[MessageText]
    translation_options: TranslationPair | None = None


class ChatRequest(ChatText):
    """The body of `POST /v1/chat/completions`. Other fields of OpenAI's are ignored."""

    messages: Annotated[list[Message], Meta(min_length=1, description="the last one is the user's")]
    translation_options: Annotated[
        TranslationOptions | None, Meta(description="translate instead of chatting")
    ] = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    max_tokens: Positive | None = None
    max_completion_tokens: Positive | None = None
    stop: Annotated[str | list[str] | None, Meta(description=f"at most {MAX_STOPS}")] = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    n: Annotated[Literal[1] | None, Meta(description="one answer")] = None
    logprobs: Annotated[bool | None, Meta(description="true is not supported")] = None
    tools: Annotated[list[Any], Meta(max_length=0, description="not supported")] | None = None
    functions: Annotated[list[Any], Meta(max_length=0, description="not supported")] | None = None
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that end the answer."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with a count of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage
