"""Azure AI Translator: `/translate`, `/detect` and `/languages` with an `api-version`, 3.0 or 2026-06-06.

Sources: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate and
the client azure-ai-translation-text, 1.0.1 and 2.0.0.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dragoman_protocols.api import Results
from dragoman_protocols.errors import RequestError, UnknownLanguageError
from dragoman_protocols.languages import language
from dragoman_protocols.translation import Formality, Format, TranslationRequest, TranslationResult
from dragoman_service.dialects.azure.errors import AzureRefusal, body_of, number_of
from dragoman_service.dialects.azure.shapes import Gender, Input, Inputs, Item, Items, Target, TextType, Tone
from dragoman_service.dialects.bodies import read_json
from dragoman_service.dialects.headers import headers_for
from dragoman_service.dialects.queries import bound_fields
from dragoman_service.http.work import Call

V3 = "3.0"
V2026 = "2026-06-06"
VERSIONS = (V3, V2026)

MOST_ITEMS = 1000
MOST_CHARS = 50_000
"""Of all items together, counted once for each language that they are translated into."""

REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")


FORMALITIES = {Tone.NEUTRAL: Formality.DEFAULT, Tone.FORMAL: Formality.MORE, Tone.INFORMAL: Formality.LESS}
FORMATS = {TextType.PLAIN: Format.PLAIN, TextType.HTML: Format.HTML}


@dataclass(frozen=True)
class Wanted:
    """One translation of one text.

    Args:
        text: The source.
        to: The target language as it was asked for, and as it is answered.
        how: Everything but the text; texts that agree in it are one request to the core.
    """

    text: str
    to: str
    how: TranslationRequest


Rows = list[list[Wanted]]
"""For each text, its translations in the order in which they were asked for."""


def read_v3(query: Any, body: bytes, max_texts: int) -> Rows:
    """What version 3.0 asks for.

    Args:
        query: The request's parameters, each with one value or several.
        body: An array of texts.
        max_texts: See `check_size`.

    Raises:
        CallerError: It cannot be answered; with the number that Azure has for it.
    """
    for name in ("toScript", "profanityAction"):
        if query.get(name) not in (None, "", "NoAction"):
            raise AzureRefusal(400000, f"{name}={query[name][:40]} is not supported here; leave it out")
    items: list[Item] = read_json(body, Items)
    targets = query.getlist("to")
    if not targets:
        raise AzureRefusal(400036, 'the parameter "to" is missing; name the language to translate into')
    check_size(((item.text, len(targets)) for item in items), max_texts)
    try:
        text_type = TextType(query.get("textType") or TextType.PLAIN)
    except ValueError:
        raise AzureRefusal(400071, "textType: expected plain or html") from None
    source = _source(query.get("from"), query.get("fromScript"))
    hows = [
        (to, TranslationRequest((), _target(to, None), source, format=FORMATS[text_type])) for to in targets
    ]
    return [[Wanted(item.text, to, how) for to, how in hows] for item in items]


def read_v2026(body: bytes, max_texts: int) -> Rows:
    """What version 2026-06-06 asks for: each text has languages, a format and targets of its own.

    Raises:
        CallerError: See `read_v3`.
    """
    inputs = read_json(body, Inputs).inputs
    check_size(((item.text, len(item.targets)) for item in inputs), max_texts)
    return [
        [
            Wanted(item.text, target.language, _how(item, target, _source(item.language, item.script)))
            for target in item.targets
        ]
        for item in inputs
    ]


def _how(item: Input, target: Target, source: str | None) -> TranslationRequest:
    gendered = f"Where the text leaves a person's gender open, use {target.gender} forms."
    return TranslationRequest(
        (),
        _target(target.language, target.script),
        source,
        format=FORMATS[item.textType],
        formality=FORMALITIES[target.tone],
        instructions=() if target.gender is Gender.NEUTRAL else (gendered,),
    )


def _source(tag: str | None, script: str | None) -> str | None:
    return _checked(tag, script, 400035) if tag else None


def _target(tag: str, script: str | None) -> str:
    return _checked(tag, script, 400036)


def _checked(tag: str, script: str | None, number: int) -> str:
    whole = f"{tag}-{script}" if script and script.lower() not in tag.lower().split("-") else tag
    try:
        language(whole)
    except UnknownLanguageError as error:
        raise AzureRefusal(number, str(error)) from None
    return whole


def check_size(sizes: Iterable[tuple[str, int]], max_texts: int) -> None:
    """Keep to Azure's limits, and the pod's own.

    Args:
        sizes: Each text, and how many languages it becomes.
        max_texts: Texts that the pod takes in one request, where that is less than Azure's bound.

    Raises:
        AzureRefusal: There are too many texts, or too many characters; an empty text counts as one.
    """
    found = list(sizes)
    most = min(MOST_ITEMS, max_texts)
    if len(found) > most:
        raise AzureRefusal(400072, f"{len(found)} texts in one request; send at most {most}")
    chars = sum(max(1, len(text)) * targets for text, targets in found)
    if chars > MOST_CHARS:
        raise AzureRefusal(
            400077, f"{chars} characters, over all target languages; send at most {MOST_CHARS}"
        )


def grouped(rows: Rows) -> dict[TranslationRequest, list[Wanted]]:
    """Texts that are translated alike, by how; blank ones are not translated."""
    groups: dict[TranslationRequest, list[Wanted]] = {}
    for row in rows:
        for wanted in row:
            if wanted.text.strip():
                groups.setdefault(wanted.how, []).append(wanted)
    return groups


def rendered(
    rows: Rows, groups: Sequence[Sequence[Wanted]], results: Results, version: str
) -> list[dict[str, Any]]:
    """One object per text with its translations, in the order of the request.

    Args:
        rows: As read.
        groups: What each of `results` is of.
        results: The core's.
        version: Of the API.
    """
    found = {
        id(wanted): result
        for group, done in zip(groups, results, strict=True)
        for wanted, result in zip(group, done, strict=True)
    }
    return [_rendered_row(row, [found.get(id(wanted)) for wanted in row], version) for row in rows]


def _rendered_row(row: list[Wanted], done: list[TranslationResult | None], version: str) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if row[0].how.source_lang is None:
        first = done[0]
        answer["detectedLanguage"] = {
            "language": first.source_lang if first else "und",
            "score": (first.confidence or 0.0) if first else 0.0,
        }
    texts = [result.text if result else wanted.text for wanted, result in zip(row, done, strict=True)]
    if version == V3:
        answer["translations"] = [
            {"text": text, "to": wanted.to} for wanted, text in zip(row, texts, strict=True)
        ]
        return answer
    answer["translations"] = [
        {"language": wanted.to, "sourceCharacters": len(wanted.text), "text": text}
        | (
            {"instructionTokens": result.prompt_tokens, "responseTokens": result.output_tokens}
            if result
            else {}
        )
        for wanted, text, result in zip(row, texts, done, strict=True)
    ]
    return answer


@dataclass(frozen=True)
class Azure:
    """The dialect, for one request.

    Args:
        request_id: Goes back as `X-RequestId`.
        version: Of the API, as it was asked for.
        max_texts: Texts that the pod takes in one request.
    """

    request_id: str
    version: str
    max_texts: int
    name: str = "azure"

    def read(self, request: Request, body: bytes) -> Call:
        """Texts, each of which may become several languages."""
        version = version_of(request)
        if version == V3:
            rows = read_v3(request.query_params, body, self.max_texts)
        else:
            rows = read_v2026(body, self.max_texts)
        groups = grouped(rows)
        chars = sum(len(wanted.text) for row in rows for wanted in row)

        def render(results: Results) -> Response:
            items = rendered(rows, list(groups.values()), results, version)
            headers = {"X-RequestId": self.request_id, "X-Metered-Usage": str(chars)}
            return JSONResponse(items if version == V3 else {"value": items}, headers=headers)

        requests = (
            replace(how, texts=tuple(wanted.text for wanted in group)) for how, group in groups.items()
        )
        return Call(tuple(requests), render, charged=chars)

    def refuse(self, error: RequestError) -> Response:
        """`{"error": {"code", "message"}}` with a number of six digits."""
        number = number_of(error)
        headers = headers_for(error) | {"X-RequestId": self.request_id}
        return JSONResponse(
            body_of(number if self.version == V3 else str(number), str(error)), number // 1000, headers
        )


def azure(request: Request, max_texts: int) -> Azure:
    """The dialect for a request, with the id that it goes by."""
    asked = request.headers.get("X-RequestId") or request.headers.get("X-ClientTraceId") or ""
    request_id = asked if REQUEST_ID.fullmatch(asked) else str(uuid.uuid4())
    return Azure(request_id, request.query_params.get("api-version", V3), max_texts)


def version_of(request: Request) -> str:
    """Which version of the API is spoken.

    Raises:
        AzureRefusal: None, or one that is not known.
    """
    bound_fields(request)
    version = request.query_params.get("api-version", "")
    if version not in VERSIONS:
        raise AzureRefusal(400021, f"api-version: expected {' or '.join(VERSIONS)}")
    return version
