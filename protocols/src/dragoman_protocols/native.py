"""Dragoman's own API: `POST /translate {text, source_lang, target_lang}` → `{translation}`.

LibreTranslate has the same path; `speaks_libretranslate` recognises its requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta, Struct

from dragoman_contract.http import TRANSLATE_PATH
from dragoman_contract.languages import MAX_TAG_CHARS
from dragoman_protocols import errors
from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.calls import Peek, Reading, Translate, json_of, peek_of
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import ErrorTable, InvalidFieldError, MalformedRequestError, RequestError
from dragoman_protocols.glossaries.matching import MAX_TERM_CHARS, Term
from dragoman_protocols.languages import AUTO, canonical_of_short
from dragoman_protocols.memories import segment_key
from dragoman_protocols.messages import Answer, Request, error_answer, event, json_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import (
    Delta,
    Formality,
    Format,
    OnFinding,
    Split,
    TranslationRequest,
    TranslationResult,
)

ERRORS = ErrorTable(
    errors.STATUSES
    | {
        errors.CallerError: 422,
        errors.MalformedRequestError: 400,
        errors.EmptyTextError: 400,
        errors.UnknownGlossaryError: 404,
        errors.DocumentNotDoneError: 409,
        errors.TextTooLongError: 413,
        errors.TruncatedOutputError: 502,
        errors.UnreliableTranslationError: 502,
    }
)
"""Statuses."""

MAX_GLOSSARIES = 5
"""Of a request, as in DeepL's API."""

Tag = Annotated[str, Meta(max_length=MAX_TAG_CHARS)]


class NativeTerm(Struct, forbid_unknown_fields=True):
    """One entry of a glossary."""

    source: Annotated[
        str, Meta(min_length=1, max_length=MAX_TERM_CHARS, description="as it stands in the text")
    ]
    target: Annotated[
        str, Meta(min_length=1, max_length=MAX_TERM_CHARS, description="its one right translation")
    ]
    case_sensitive: Annotated[
        bool, Meta(description="whether the source is matched only as it is written")
    ] = False


class NativeUnit(Struct, forbid_unknown_fields=True):
    """One entry of a translation memory."""

    source: Annotated[
        str, Meta(min_length=1, description="a segment; white space aside it is matched exactly")
    ]
    target: Annotated[str, Meta(min_length=1, description="its translation, which is taken as it is")]


class TranslatePair(Struct):
    """What a router reads of the body of `POST /translate`."""

    text: Annotated[str | list[str], Meta(description="one text, or several")]
    target_lang: Annotated[Tag, Meta(description='BCP-47 tag of the translation, such as "de" or "zh-Hant"')]
    source_lang: Annotated[
        Tag | None,
        Meta(description='BCP-47 tag of the text, such as "en"; default and "auto": detected, text by text'),
    ] = None
    glossary_id: Annotated[str | None, Meta(description="a kept glossary")] = None
    glossary_ids: Annotated[
        list[str], Meta(max_length=MAX_GLOSSARIES, description="the same for several glossaries")
    ] = []


class TranslateRequest(TranslatePair, forbid_unknown_fields=True):
    """The body of `POST /translate`."""

    format: Annotated[Format, Meta(description="how the text is written")] = Format.PLAIN
    terms: Annotated[list[NativeTerm], Meta(description="glossary of this request")] = []
    memory: Annotated[
        list[NativeUnit], Meta(description="translations of segments that are not generated")
    ] = []
    formality: Annotated[Formality, Meta(description="tone, where the language has one")] = Formality.DEFAULT
    context: Annotated[str, Meta(description="text that helps to understand and is not translated")] = ""
    instructions: Annotated[list[str], Meta(description="instructions to the model, in words")] = []
    alternatives: Annotated[int, Meta(ge=0, le=9, description="further translations of each text")] = 0
    ignore_tags: Annotated[list[str], Meta(description="elements that are not translated")] = []
    split: Annotated[
        Split | None, Meta(description="what may end a segment; default: as the pod is set up")
    ] = None
    ignore_unsupported: Annotated[
        bool, Meta(description="drop, with a warning, an option that the model does not support; else refuse")
    ] = False
    on_finding: Annotated[
        OnFinding,
        Meta(description="what a finding of a guard leads to: a warning, or an error"),
    ] = OnFinding.FLAG
    timeout_s: Annotated[float, Meta(gt=0, description="time limit of the request in seconds")] | None = None
    details: Annotated[bool, Meta(description="answer with details in any case")] = False
    stream: Annotated[bool, Meta(description="answer with server-sent events")] = False


class NativeWarning(Struct):
    """Something to know about a translation that was given all the same."""

    code: Annotated[str, Meta(description="stable name: a guard's, `source_uncertain`, `source_kept`, …")]
    detail: Annotated[str, Meta(description="in words, none of them the text's")]
    segment: Annotated[int | None, Meta(description="index of the segment it is about")] = None


class Details(Struct):
    """What is known of one text's translation."""

    source_lang: Annotated[str, Meta(description="BCP-47 tag of the text, as given or as detected")]
    segments: Annotated[int, Meta(ge=0, description="number of segments it was made of")]
    prompt_tokens: Annotated[int, Meta(ge=0, description="tokens that the model read")]
    output_tokens: Annotated[int, Meta(ge=0, description="tokens that the model wrote")]
    from_memory: Annotated[
        int, Meta(ge=0, description="number of segments from `memory`, where there are any")
    ] = 0
    confidence: Annotated[float, Meta(ge=0, le=1, description="of the detection, if there was one")] = 0
    alternatives: Annotated[list[str], Meta(description="further translations")] = []
    warnings: list[NativeWarning] = []


class TranslateResponse(Struct):
    """Its answer: one translation where one text was sent, else as many as texts."""

    translation: str | list[str]
    details: Annotated[
        list[Details],
        Meta(
            description="for each text: where `details` is set or a language detected, with alternatives or warnings"
        ),
    ] = []


class ErrorBody(Struct):
    """What went wrong."""

    code: Annotated[str, Meta(description="stable name of the cause")]
    message: Annotated[str, Meta(description="what is wrong and what to do about it")]


class ErrorResponse(Struct):
    """Every answer that is no success."""

    error: ErrorBody


class Native(Api):
    """The API."""

    name = "native"
    error_type = ErrorResponse
    key_headers = (b"x-api-key",)
    key_place = "in the header `X-API-Key: KEY` or `Authorization: Bearer KEY`"

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"code", "message"}}`."""
        return error_answer(error, ERRORS[error], _error_document(error))


_ABSENT = msgspec.Raw()


class _TopLevel(Struct):
    """The fields that distinguish JSON bodies of the two APIs; `Raw` makes no objects of their values."""

    q: msgspec.Raw = _ABSENT
    source: msgspec.Raw = _ABSENT
    target: msgspec.Raw = _ABSENT
    text: msgspec.Raw = _ABSENT
    source_lang: msgspec.Raw = _ABSENT
    target_lang: msgspec.Raw = _ABSENT


_TOP_LEVEL = msgspec.json.Decoder(_TopLevel)


def speaks_libretranslate(request: Request) -> bool:
    """Whether a request at `/translate` is LibreTranslate's: a form, `q` in the query, or by the fields of JSON."""
    if not request.is_json:
        return request.is_form or request.is_multipart or _has_q(request)
    body = request.body
    if b'"q"' not in body and b'"source"' not in body and b'"target"' not in body:
        return False
    try:
        top = _TOP_LEVEL.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    own = top.text or top.source_lang or top.target_lang
    return bool(top.q or (not own and (top.source or top.target)))


def _has_q(request: Request) -> bool:
    if b"q" not in request.query:
        return False
    try:
        return "q" in request.query_fields()
    except MalformedRequestError:
        return True


def find(body: TranslatePair, _: Offer) -> Peek:
    """The pair, the texts and the glossaries."""
    texts = (body.text,) if isinstance(body.text, str) else tuple(body.text)
    found = peek_of(need_of(body.source_lang, body.target_lang, texts))
    if body.glossary_id is None and not body.glossary_ids:
        return found
    return found._replace(glossary_ids=glossary_ids(body))


def call(body: TranslateRequest, found: Peek, site: Site) -> Translate:
    """Texts of one pair, with all options."""
    (need,) = found.needs
    site.limits.check_texts(len(need.texts))
    return Translate(
        (translation_request(body, need),),
        found.characters,
        lambda results: json_answer(_document(body, results[0])),
        NativeEvents(body) if body.stream else None,
        glossary_ids=found.glossary_ids,
    )


class NamesGlossaries(Protocol):
    """A request that can name glossaries."""

    glossary_id: str | None
    glossary_ids: list[str]


def glossary_ids(body: NamesGlossaries) -> tuple[str, ...]:
    """The glossaries that a request names."""
    return (*body.glossary_ids, *([] if body.glossary_id is None else [body.glossary_id]))


def need_of(source_lang: str | None, target_lang: str, texts: tuple[str, ...] = ()) -> Need:
    """The pair of a request.

    Args:
        source_lang: A `Tag`, `auto`, or None.
        target_lang: A `Tag`.
        texts: Of the pair.

    Raises:
        UnknownLanguageError: A tag is none.
    """
    # Not `canonical`: the types bound the tags' length, and this one runs no Python for a tag that it knows.
    is_detected = source_lang is None or source_lang.lower() == AUTO
    source = None if is_detected else canonical_of_short(source_lang)
    return Need(source, (canonical_of_short(target_lang),), texts)


def translation_request(body: TranslateRequest, need: Need) -> TranslationRequest:
    """What the core has to do with the texts of `need`.

    Raises:
        InvalidFieldError: A term or a unit of the memory is blank.
    """
    return TranslationRequest(
        texts=need.texts,
        # As they were sent: a deployment may list a tag in another form than the canonical one.
        target_lang=body.target_lang,
        source_lang=None if need.source is None else body.source_lang,
        format=body.format,
        split=body.split,
        terms=_terms(body.terms) if body.terms else (),
        memory=_memory(body.memory) if body.memory else {},
        formality=body.formality,
        context=body.context,
        instructions=tuple(body.instructions),
        alternatives=body.alternatives,
        ignore_tags=frozenset(body.ignore_tags),
        ignore_unsupported=body.ignore_unsupported,
        on_finding=body.on_finding,
        timeout_s=body.timeout_s,
    )


def _terms(terms: Sequence[NativeTerm]) -> tuple[Term, ...]:
    for index, term in enumerate(terms):
        for name, value in (("source", term.source), ("target", term.target)):
            if not value.strip():
                raise InvalidFieldError(f"terms[{index}].{name} must not be blank")
    return tuple([Term(term.source, term.target, term.case_sensitive) for term in terms])


def _memory(units: Sequence[NativeUnit]) -> dict[str, str]:
    memory: dict[str, str] = {}
    for index, unit in enumerate(units):
        key = segment_key(unit.source)
        if not key or not unit.target.strip():
            raise InvalidFieldError(f"memory[{index}] must not be blank")
        memory.setdefault(key, unit.target.strip())
    return memory


def _document(body: TranslateRequest, results: Sequence[TranslationResult]) -> dict[str, Any]:
    """The answer for translations."""
    translations = [result.text for result in results]
    answer: dict[str, Any] = {"translation": translations if isinstance(body.text, list) else translations[0]}
    detected = body.source_lang is None or body.source_lang.lower() == AUTO
    if body.details or detected or any(each.alternatives or each.warnings for each in results):
        answer["details"] = [_details(result) for result in results]
    return answer


def _details(result: TranslationResult) -> dict[str, Any]:
    details: dict[str, Any] = {"source_lang": result.source_lang}
    if result.confidence is not None:
        details["confidence"] = result.confidence
    if result.from_memory:
        details["from_memory"] = result.from_memory
    return details | {
        "alternatives": list(result.alternatives),
        "warnings": [
            {"code": each.code, "detail": each.detail}
            | ({} if each.segment is None else {"segment": each.segment})
            for each in result.warnings
        ],
        "segments": result.segments,
        "prompt_tokens": result.prompt_tokens,
        "output_tokens": result.output_tokens,
    }


def _error_document(error: RequestError) -> dict[str, Any]:
    return {"error": {"code": error.code, "message": str(error)}}


@dataclass
class NativeEvents:
    """A streamed translation: `delta` events, then one `result` that is the whole answer, or one `error`.

    Args:
        results: Of the texts that are complete, by their index.
    """

    body: TranslateRequest
    results: dict[int, TranslationResult] = field(default_factory=dict)

    def delta(self, delta: Delta) -> bytes:
        """A piece of one text's translation."""
        if delta.result is not None:
            self.results[delta.index] = delta.result
        return event({"index": delta.index, "text": delta.text}, "delta") if delta.text else b""

    def end(self) -> bytes:
        """The answer as it would have been without streaming."""
        return event(_document(self.body, [self.results[index] for index in sorted(self.results)]), "result")

    def failed(self, error: RequestError) -> bytes:
        """The error's body as it would have been without streaming."""
        return event(_error_document(error), "error")


API = Native()
READING = Reading(json_of(TranslatePair), find, call, json_of(TranslateRequest))
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        TRANSLATE_PATH,
        frozenset({"POST"}),
        reading=READING,
        operation=Operation(
            "Translate one text or several. With `stream: true` the response is server-sent events: `delta` for each "
            "piece of a text, then `result` with the whole response, or `error`.",
            {JSON_TYPE: TranslateRequest},
            answer=TranslateResponse,
            streams=True,
        ),
    ),
)
