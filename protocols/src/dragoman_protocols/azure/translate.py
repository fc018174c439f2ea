"""Translations of Azure's API: in 3.0 all texts have the same languages, in 2026-06-06 each has its own.

Source: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from dragoman_protocols.azure.dynamic_dictionary import marked, restored, with_dictionary
from dragoman_protocols.azure.head import AzureError, id_headers, parameters, version_of
from dragoman_protocols.azure.types import (
    MAX_ITEMS,
    Gender,
    Input,
    InputLanguages,
    Inputs,
    InputsLanguages,
    Item,
    Target,
    TextType,
    Tone,
    Version,
)
from dragoman_protocols.bodies import read_json
from dragoman_protocols.calls import Peek, Reading, Results, Translate
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.forms import FieldValues, last
from dragoman_protocols.languages import Codes
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Limits, Site
from dragoman_protocols.translation import (
    UNDETERMINED,
    Formality,
    Format,
    TranslationRequest,
    TranslationResult,
)

MAX_CHARACTERS = 50_000
"""Of all texts together, once for each language that they are translated into; an empty text counts as one."""
MAX_PAIRS = 200
"""Different pairs of one request: a router looks up each."""

FORMALITIES = {Tone.NEUTRAL: Formality.DEFAULT, Tone.FORMAL: Formality.MORE, Tone.INFORMAL: Formality.LESS}
FORMATS = {TextType.PLAIN: Format.PLAIN, TextType.HTML: Format.HTML}

CODES = Codes({}, {})

_ITEMS = msgspec.json.Decoder(list[Item])
_INPUTS = msgspec.json.Decoder(Inputs)
_LANGUAGES = msgspec.json.Decoder(InputsLanguages)

Code = tuple[str, str | None]
"""A language and a script, as they were sent."""


@dataclass(frozen=True)
class Group:
    """Texts with the same languages.

    Args:
        source: Their language; None where it has to be detected.
        targets: The languages that they are translated into, in their order; one may be there twice.
    """

    texts: tuple[str, ...]
    source: Code | None
    targets: tuple[Code, ...]


@dataclass(frozen=True)
class Wanted:
    """One translation of one text.

    Args:
        to: The target language as it was sent, and as it is answered.
        request: Everything but the text; texts that agree in it are translated together.
    """

    text: str
    to: str
    request: TranslationRequest


Rows = list[list[Wanted]]
"""For each text, its translations in the order of the request."""


class Parsed(NamedTuple):
    """A request of either version.

    Args:
        groups: Its texts; of version 3.0 one group, else one for each input.
        inputs: Of version 2026-06-06.
    """

    request: Request
    version: Version
    groups: Sequence[Group]
    inputs: Sequence[InputLanguages] = ()


def parse(request: Request) -> Parsed:
    """The languages and the texts."""
    return _parsed(request, _LANGUAGES)


def parse_all(request: Request) -> Parsed:
    """The same, with `Input`s."""
    return _parsed(request, _INPUTS)


def _parsed(request: Request, decoder: msgspec.json.Decoder[Any]) -> Parsed:
    version = version_of(request)
    if version is Version.V3:
        return Parsed(request, version, [_group_of_v3(request)])
    inputs = read_json(request.body, decoder).inputs
    return Parsed(request, version, [_group_of_input(each) for each in inputs], inputs)


def find(parsed: Parsed, offer: Offer) -> Peek:
    """The pairs and the texts of a translation."""
    groups = parsed.groups
    check_number(sum(len(group.texts) for group in groups), None)
    check_characters(sum(len(group.targets) * max(1, len(text)) for group in groups for text in group.texts))
    characters = sum(len(group.targets) * sum(map(len, group.texts)) for group in groups)
    return Peek(_needs(groups, offer), characters)


def call(parsed: Parsed, found: Peek, site: Site) -> Translate:
    """Texts, each of which may become several languages."""
    request, version, groups, inputs = parsed
    check_number(sum(len(group.texts) for group in groups), site.limits)
    if version is Version.V3:
        query = parameters(request)
        _check_unsupported(query)
        rows = _rows_of_v3(query, groups[0], site.offer)
    else:
        rows = [_row_of_input(each, group, site.offer) for each, group in zip(inputs, groups, strict=True)]
    together = _together(rows)
    headers = (*id_headers(request), ("X-Metered-Usage", str(found.characters)))

    def render(results: Results) -> Answer:
        items = _rendered(rows, list(together.values()), results, version)
        return json_answer(items if version is Version.V3 else {"value": items}, headers=headers)

    requests = tuple(
        replace(one, texts=tuple(marked(each.text, one) for each in wanted))
        for one, wanted in together.items()
    )
    return Translate(requests, found.characters, render)


def read_texts(body: bytes) -> tuple[str, ...]:
    """The texts of a body of version 3.0.

    Raises:
        CallerError: It is no array of texts.
    """
    items = read_json(body, _ITEMS)
    return tuple(_text(at, item) for at, item in enumerate(items))


def check_number(texts: int, limits: Limits | None) -> None:
    """Keep to Azure's maximum number of texts, and to that of the program that answers.

    Raises:
        AzureError: There are more.
    """
    most = MAX_ITEMS
    if limits is not None and limits.max_texts is not None:
        most = min(most, limits.max_texts)
    if texts > most:
        raise AzureError(400072, f"{texts} texts in one request; send at most {most}")


def check_characters(characters: int) -> None:
    """Keep to Azure's maximum number of characters.

    Raises:
        AzureError: There are more.
    """
    if characters > MAX_CHARACTERS:
        raise AzureError(
            400077, f"{characters} characters, over all target languages; send at most {MAX_CHARACTERS}"
        )


def score(confidence: float) -> float:
    """Of a detection, with two decimals as Azure's: clients take 1 for certain."""
    return round(confidence, 2)


def _text(at: int, item: Item) -> str:
    text = item.text if item.Text is msgspec.UNSET else item.Text
    if text is msgspec.UNSET:
        raise InvalidFieldError(f"[{at}].Text is required")
    return text


def _check_unsupported(query: FieldValues) -> None:
    for name in ("toScript", "profanityAction"):
        value = last(query, name)
        if value not in (None, "", "NoAction"):
            raise AzureError(400000, f"{name}={value[:40]} is not supported here; leave it out")


def _group_of_v3(request: Request) -> Group:
    query = parameters(request)
    texts = read_texts(request.body)
    targets = query.get("to")
    if not targets:
        raise AzureError(400036, 'the parameter "to" is missing; name the language to translate into')
    source = last(query, "from")
    return Group(
        texts,
        (source, last(query, "fromScript")) if source else None,
        tuple((target, None) for target in targets),
    )


def _group_of_input(each: InputLanguages) -> Group:
    return Group(
        (each.text,),
        (each.language, each.script) if each.language else None,
        tuple((target.language, target.script) for target in each.targets),
    )


def _needs(groups: Iterable[Group], offer: Offer) -> tuple[Need, ...]:
    """One for each source, and for each list of targets of texts whose source has to be detected.

    Raises:
        AzureError: There are too many pairs.
        UnknownLanguageError: A code is none.
    """
    found: dict[tuple[Code | None, tuple[Code, ...]], tuple[dict[Code, None], list[str]]] = {}
    for group in groups:
        apart = () if group.source else group.targets
        targets, texts = found.setdefault((group.source, apart), ({}, []))
        targets.update(dict.fromkeys(group.targets))
        texts += group.texts
    pairs = sum(len(targets) for targets, _ in found.values())
    if pairs > MAX_PAIRS:
        raise AzureError(400000, f"{pairs} pairs of languages in one request; send at most {MAX_PAIRS}")
    return tuple(
        Need(
            _source(source, offer),
            tuple(dict.fromkeys(_target(target, offer) for target in targets)),
            tuple(texts),
            keeps=True,
        )
        for (source, _), (targets, texts) in found.items()
    )


def _source(code: Code | None, offer: Offer) -> str | None:
    return None if code is None else CODES.tag(_code(code), offer.listed_sources, "source")


def _target(code: Code, offer: Offer) -> str:
    return CODES.tag(_code(code), offer.listed_targets)


def _code(code: Code) -> str:
    language, script = code
    has_script = not script or script.lower() in language.lower().split("-")
    return language if has_script else f"{language}-{script}"


def _rows_of_v3(query: FieldValues, group: Group, offer: Offer) -> Rows:
    try:
        text_type = TextType(last(query, "textType") or TextType.PLAIN)
    except ValueError:
        raise AzureError(400071, "textType: expected plain or html") from None
    source = _source(group.source, offer)
    requests = [
        (target[0], TranslationRequest((), _target(target, offer), source, format=FORMATS[text_type]))
        for target in group.targets
    ]
    return [
        [Wanted(text, to, with_dictionary(text, request)) for to, request in requests] for text in group.texts
    ]


def _row_of_input(each: Any, group: Group, offer: Offer) -> list[Wanted]:
    source = _source(group.source, offer)
    return [
        Wanted(
            each.text,
            target.language,
            with_dictionary(each.text, _request(each, target, source, _target(code, offer))),
        )
        for target, code in zip(each.targets, group.targets, strict=True)
    ]


def _request(each: Input, target: Target, source: str | None, tag: str) -> TranslationRequest:
    gendered = f"Where the text leaves a person's gender open, use {target.gender} forms."
    return TranslationRequest(
        (),
        tag,
        source,
        format=FORMATS[each.textType],
        formality=FORMALITIES[target.tone],
        instructions=() if target.gender is Gender.NEUTRAL else (gendered,),
    )


def _together(rows: Rows) -> dict[TranslationRequest, list[Wanted]]:
    """The translations by their request; blank texts are not translated."""
    found: dict[TranslationRequest, list[Wanted]] = {}
    for row in rows:
        for wanted in row:
            if wanted.text.strip():
                found.setdefault(wanted.request, []).append(wanted)
    return found


def _rendered(
    rows: Rows, together: Sequence[Sequence[Wanted]], results: Results, version: Version
) -> list[dict[str, Any]]:
    """One object for each text with its translations, in the order of the request."""
    found = {
        id(wanted): result
        for group, done in zip(together, results, strict=True)
        for wanted, result in zip(group, done, strict=True)
    }
    return [_rendered_row(row, [found.get(id(wanted)) for wanted in row], version) for row in rows]


def _rendered_row(
    row: list[Wanted], done: list[TranslationResult | None], version: Version
) -> dict[str, Any]:
    answer: dict[str, Any] = {}
    if row[0].request.source_lang is None:
        first = done[0]
        answer["detectedLanguage"] = {
            "language": first.source_lang if first else UNDETERMINED,
            "score": score((first.confidence or 0.0) if first else 0.0),
        }
    texts = [
        restored(result.text, wanted.request) if result else wanted.text
        for wanted, result in zip(row, done, strict=True)
    ]
    if version is Version.V3:
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


READING = Reading(parse, find, call, parse_all)
