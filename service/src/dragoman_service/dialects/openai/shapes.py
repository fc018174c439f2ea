"""What OpenAI's chat API reads, as far as it is served here.

Sources: https://platform.openai.com/docs/api-reference/chat/create, and for `translation_options`
https://www.alibabacloud.com/help/en/model-studio/machine-translation (Qwen-MT).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from dragoman_protocols.glossaries.matching import MOST_TERM_CHARS
from dragoman_service.dialects.bodies import FIRST_PROBLEM

MOST_STOPS = 16


class ContentPart(BaseModel):
    """A part of a message; only text is taken."""

    type: Literal["text"]
    text: str


class Message(BaseModel):
    """A turn of a chat."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[ContentPart], FIRST_PROBLEM]

    @property
    def text(self) -> str:
        """All that it says."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class TermPair(BaseModel):
    """A text and what it becomes."""

    source: str = Field(min_length=1, max_length=MOST_TERM_CHARS, pattern=r"\S")
    target: str = Field(min_length=1, max_length=MOST_TERM_CHARS, pattern=r"\S")


class TranslationOptions(BaseModel):
    """Makes the last message a text to translate."""

    model_config = ConfigDict(extra="forbid")

    target_lang: str = Field(min_length=1, description="English name or BCP-47 tag of the language")
    source_lang: str = Field("auto", description="the same for the text's language; auto: detected")
    terms: Annotated[list[TermPair], FIRST_PROBLEM] = Field(
        default_factory=list, description="glossary of this request"
    )
    tm_list: Annotated[list[TermPair], FIRST_PROBLEM] = Field(
        default_factory=list, description="translations to take after"
    )
    domains: str = Field("", description="about the text's field and style, in words")


class StreamOptions(BaseModel):
    """How to stream."""

    include_usage: bool = Field(False, description="end with a chunk that counts tokens")


class ResponseFormat(BaseModel):
    """What the answer shall be; only text can be had."""

    type: Literal["text"]


class ChatRequest(BaseModel):
    """The body of `POST /v1/chat/completions`. Other fields of OpenAI's are read over."""

    model: str = Field(description="name of the deployment")
    messages: Annotated[list[Message], FIRST_PROBLEM] = Field(
        min_length=1, description="the last one is the user's"
    )
    translation_options: TranslationOptions | None = Field(None, description="translate rather than chat")
    temperature: float | None = Field(None, ge=0, le=2)
    top_p: float | None = Field(None, gt=0, le=1)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stop: str | Annotated[list[str], FIRST_PROBLEM] | None = Field(None, description=f"at most {MOST_STOPS}")
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    n: Literal[1] | None = Field(None, description="one answer")
    logprobs: Literal[False] | None = Field(None, description="not to be had")
    tools: list[object] | None = Field(None, max_length=0, description="not to be had")
    functions: list[object] | None = Field(None, max_length=0, description="not to be had")
    response_format: ResponseFormat | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None

    @property
    def stops(self) -> tuple[str, ...]:
        """Strings that end the answer."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    @property
    def counts(self) -> bool:
        """Whether a stream ends with a count of tokens."""
        return self.stream_options is not None and self.stream_options.include_usage


class Answer(BaseModel):
    """What the model says."""

    role: Literal["assistant"]
    content: str
    refusal: None = None


class Choice(BaseModel):
    """The one answer."""

    index: Literal[0]
    message: Answer
    logprobs: None = None
    finish_reason: Literal["stop", "length"]


class Usage(BaseModel):
    """Tokens that the model read and wrote."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatAnswer(BaseModel):
    """The answer of a request that does not stream."""

    id: str
    object: Literal["chat.completion"]
    created: int = Field(description="Unix seconds")
    model: str
    choices: list[Choice]
    usage: Usage


class Model(BaseModel):
    """The model that there is."""

    id: str
    object: Literal["model"]
    created: int = Field(description="Unix seconds")
    owned_by: str


class Models(BaseModel):
    """All one of them."""

    object: Literal["list"]
    data: list[Model]


class ErrorBody(BaseModel):
    """What went wrong."""

    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorResponse(BaseModel):
    """Every answer that is no success."""

    error: ErrorBody
