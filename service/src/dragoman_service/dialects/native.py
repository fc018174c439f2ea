"""The pod's own API: `POST /translate {text, source_lang, target_lang}` → `{translation}`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from dragoman_protocols.errors import (
    BodyTooLargeError,
    CallerError,
    CapacityError,
    DeadlineExceededError,
    EmptyTextError,
    EngineDeadError,
    InvalidFieldError,
    MalformedRequestError,
    RequestError,
    TextTooLongError,
    TruncatedOutputError,
    UnreliableTranslationError,
)
from dragoman_protocols.events import event
from dragoman_protocols.glossaries.matching import MOST_TERM_CHARS, Term
from dragoman_protocols.translation import (
    Delta,
    Formality,
    Format,
    OnFinding,
    Split,
    TranslationRequest,
    TranslationResult,
)
from dragoman_service.dialects.bodies import FIRST_PROBLEM, read_json
from dragoman_service.dialects.headers import headers_for
from dragoman_service.http.work import EVENT_STREAM, Call

STATUSES: tuple[tuple[type[RequestError], int], ...] = (
    (MalformedRequestError, 400),
    (EmptyTextError, 400),
    (BodyTooLargeError, 413),
    (TextTooLongError, 413),
    (CallerError, 422),
    (CapacityError, 503),
    (EngineDeadError, 503),
    (DeadlineExceededError, 504),
    (TruncatedOutputError, 502),
    (UnreliableTranslationError, 502),
    (RequestError, 500),
)
"""The first class that fits an error gives its status."""

AUTO = "auto"
"""Asks for the source language to be detected, as leaving it out does."""

Tag = Annotated[str, StringConstraints(max_length=35)]


class NativeTerm(BaseModel):
    """One entry of a glossary."""

    model_config = ConfigDict(strict=True, extra="forbid")

    source: str = Field(
        min_length=1, max_length=MOST_TERM_CHARS, pattern=r"\S", description="as it stands in the text"
    )
    target: str = Field(
        min_length=1, max_length=MOST_TERM_CHARS, pattern=r"\S", description="its one right translation"
    )
    case_sensitive: bool = Field(False, description="whether the source is matched only as it is written")


class TranslateRequest(BaseModel):
    """The body of `POST /translate`."""

    model_config = ConfigDict(strict=True, extra="forbid")

    text: str | Annotated[list[str], FIRST_PROBLEM] = Field(description="one text, or several")
    target_lang: Tag = Field(description='BCP-47 tag of the translation, such as "de" or "zh-Hant"')
    source_lang: Tag | None = Field(
        None, description='BCP-47 tag of the text, such as "en"; left out or "auto": detected, text by text'
    )
    format: Format = Field(Format.PLAIN, description="how the text is written")
    terms: Annotated[list[NativeTerm], FIRST_PROBLEM] = Field(
        default_factory=list, description="glossary of this request"
    )
    formality: Formality = Field(Formality.DEFAULT, description="tone, where the language has one")
    context: str = Field("", description="text that helps to understand and is not translated")
    instructions: Annotated[list[str], FIRST_PROBLEM] = Field(
        default_factory=list, description="wishes in words"
    )
    alternatives: int = Field(0, ge=0, le=9, description="further translations of each text")
    ignore_tags: Annotated[list[str], FIRST_PROBLEM] = Field(
        default_factory=list, description="elements that are not translated"
    )
    split: Split | None = Field(None, description="what may end a segment; default: as the pod is set up")
    ignore_unsupported: bool = Field(
        False, description="drop, with a warning, a wish that the model cannot fulfil, rather than refuse"
    )
    on_finding: OnFinding = Field(
        OnFinding.FLAG,
        description="what becomes of a translation that a guard doubts: a warning, or an error",
    )
    timeout_s: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="seconds after which the caller gives up"
    )
    details: bool = Field(False, description="answer with details even where nothing calls for them")
    stream: bool = Field(False, description="answer with server-sent events")

    @property
    def detects(self) -> bool:
        """Whether the source language is to be found out."""
        return self.source_lang in (None, AUTO)


class NativeWarning(BaseModel):
    """Something to know about a translation that was given all the same."""

    code: str = Field(description="stable name: a guard's, `source_kept` or `option_ignored`")
    detail: str = Field(description="in words, none of them the text's")
    segment: int | None = Field(None, description="index of the segment it is about")


class Details(BaseModel):
    """What is known of one text's translation."""

    source_lang: str = Field(description="BCP-47 tag of the text, as asked or as detected")
    confidence: float | None = Field(None, ge=0, le=1, description="of the detection, if there was one")
    alternatives: list[str] = Field(default_factory=list, description="further translations")
    warnings: list[NativeWarning] = Field(default_factory=list)
    segments: int = Field(ge=0, description="how many segments it was made of")
    prompt_tokens: int = Field(ge=0, description="tokens that the model read")
    output_tokens: int = Field(ge=0, description="tokens that the model wrote")


class TranslateResponse(BaseModel):
    """Its answer: one translation where one text was sent, else as many as texts."""

    translation: str | list[str]
    details: list[Details] | None = Field(
        None,
        description="one for each text; there if asked for, or with a detected language, alternatives or warnings",
    )


class ErrorBody(BaseModel):
    """What went wrong."""

    code: str = Field(description="stable name of the cause")
    message: str = Field(description="what is wrong and what to do about it")


class ErrorResponse(BaseModel):
    """Every answer that is no success."""

    error: ErrorBody


def parse(body: bytes, max_texts: int) -> TranslateRequest:
    """What a body says.

    Args:
        body: As it came.
        max_texts: Most texts that a list may have.

    Raises:
        MalformedRequestError: It is not UTF-8, or not JSON.
        InvalidFieldError: It is JSON, but not of this shape; the fields are named.
    """
    asked = read_json(body, TranslateRequest)
    if isinstance(asked.text, list) and len(asked.text) > max_texts:
        raise InvalidFieldError(f"text: {len(asked.text)} texts in one request; send at most {max_texts}")
    return asked


def wanted(asked: TranslateRequest) -> TranslationRequest:
    """The same in the core's terms."""
    return TranslationRequest(
        texts=tuple(asked.text) if isinstance(asked.text, list) else (asked.text,),
        target_lang=asked.target_lang,
        source_lang=None if asked.detects else asked.source_lang,
        format=asked.format,
        split=asked.split,
        terms=tuple(Term(term.source, term.target, term.case_sensitive) for term in asked.terms),
        formality=asked.formality,
        context=asked.context,
        instructions=tuple(asked.instructions),
        alternatives=asked.alternatives,
        ignore_tags=frozenset(asked.ignore_tags),
        ignore_unsupported=asked.ignore_unsupported,
        on_finding=asked.on_finding,
        timeout_s=asked.timeout_s,
    )


def status_of(error: RequestError) -> int:
    """The HTTP status of an error."""
    return next(status for cause, status in STATUSES if isinstance(error, cause))


def render_error(error: RequestError) -> Response:
    """The answer for an error: `{"error": {"code", "message"}}`."""
    return error_body(error.code, str(error), status_of(error), headers_for(error))


def error_body(code: str, message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    """The one shape of errors, for those that never reach a route too."""
    return JSONResponse({"error": {"code": code, "message": message}}, status, headers)


def answered(asked: TranslateRequest, results: Sequence[TranslationResult]) -> dict[str, Any]:
    """The answer for translations."""
    translations = [result.text for result in results]
    answer: dict[str, Any] = {
        "translation": translations if isinstance(asked.text, list) else translations[0]
    }
    if asked.details or asked.detects or any(each.alternatives or each.warnings for each in results):
        answer["details"] = [_details(result) for result in results]
    return answer


def _details(result: TranslationResult) -> dict[str, Any]:
    warnings = [
        NativeWarning(code=each.code, detail=each.detail, segment=each.segment) for each in result.warnings
    ]
    return Details(
        source_lang=result.source_lang,
        confidence=result.confidence,
        alternatives=list(result.alternatives),
        warnings=warnings,
        segments=result.segments,
        prompt_tokens=result.prompt_tokens,
        output_tokens=result.output_tokens,
    ).model_dump(exclude_none=True)


@dataclass
class NativeEvents:
    """A streamed translation: `delta` events, then one `result` that is the whole answer, or one `error`.

    Args:
        asked: The request.
        results: Of the texts that are complete, by their index.
    """

    asked: TranslateRequest
    results: dict[int, TranslationResult] = field(default_factory=dict)

    def delta(self, delta: Delta) -> bytes:
        """What came of one text."""
        if delta.result is not None:
            self.results[delta.index] = delta.result
        return event({"index": delta.index, "text": delta.text}, "delta") if delta.text else b""

    def end(self) -> bytes:
        """The answer as it would have been without streaming."""
        return event(answered(self.asked, [self.results[index] for index in sorted(self.results)]), "result")

    def failed(self, error: RequestError) -> bytes:
        """The error's body as it would have been without streaming."""
        return event({"error": {"code": error.code, "message": str(error)}}, "error")


@dataclass(frozen=True)
class Native:
    """The dialect.

    Args:
        max_texts: Most texts in one request.
    """

    max_texts: int
    name: str = "native"

    def read(self, request: Request, body: bytes) -> Call:
        """See `parse`."""
        del request
        asked = parse(body, self.max_texts)
        return Call(
            (wanted(asked),),
            lambda results: JSONResponse(answered(asked, results[0])),
            NativeEvents(asked) if asked.stream else None,
        )

    def refuse(self, error: RequestError) -> Response:
        """See `render_error`."""
        return render_error(error)


def codes_by_status() -> dict[int, str]:
    """For each status of an error, the codes that come with it."""

    def below(root: type[RequestError]) -> list[type[RequestError]]:
        return [root, *(each for child in root.__subclasses__() for each in below(child))]

    codes: dict[int, set[str]] = {}
    for cause in below(RequestError):
        status = next(status for known, status in STATUSES if issubclass(cause, known))
        codes.setdefault(status, set()).add(cause.code)
    return {status: ", ".join(sorted(codes[status])) for status in sorted(codes)}


STREAM_DESCRIPTION = (
    "`delta` events with `{index, text}`, then a `result` event with what the JSON answer would have been, or an "
    "`error` event"
)
EVENT_CONTENT = {EVENT_STREAM: {"schema": {"type": "string", "description": STREAM_DESCRIPTION}}}
