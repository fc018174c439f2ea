"""Google Cloud Translation, v3: `:translateText`, `:detectLanguage` and `/supportedLanguages` of a project or location.

Project and location, and the resources before a glossary's id, are ignored: a deployment has none.
Sources: https://cloud.google.com/translate/docs/reference/rest/v3/projects.locations/translateText and the client
google-cloud-translate 3.28.0 (`translate_v3`, transport `rest`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import msgspec
from msgspec import Meta, Struct

from dragoman_protocols.bodies import JSON_TYPE, read_json
from dragoman_protocols.calls import Detect, Peek, Reading, Results, Translate, json_of, peek_of
from dragoman_protocols.endpoints import Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import UnknownPathError
from dragoman_protocols.forms import last
from dragoman_protocols.google import API, CODES, escaped
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.offer import Offer, name_in
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult, not_blank, put_back

if TYPE_CHECKING:
    from dragoman_protocols import detection

MAX_TEXTS = 1024
"""Google's own."""


class MimeType(StrEnum):
    """How texts are written."""

    HTML = "text/html"
    PLAIN = "text/plain"


class GlossaryConfig(Struct, rename="camel"):
    """The glossary of a translation."""

    glossary: Annotated[
        str,
        Meta(min_length=1, description="a glossary's id, alone or as the end of `projects/…/glossaries/ID`"),
    ]
    ignore_case: Annotated[bool, Meta(description="accepted and without effect: case is always ignored")] = (
        False
    )

    @property
    def glossary_id(self) -> str:
        """The id alone."""
        return self.glossary.rpartition("/")[2]


class TextsPair(Struct, rename="camel"):
    """What a router reads of a translation's body."""

    contents: Annotated[list[str], Meta(min_length=1, description="texts, each translated by itself")]
    target_language_code: Annotated[
        str, Meta(min_length=1, description="code of the language to translate into")
    ]
    source_language_code: Annotated[
        str, Meta(description="code of the texts' language; default: detected, text by text")
    ] = ""
    glossary_config: GlossaryConfig | None = None


class Texts(TextsPair, rename="camel"):
    """The body of `:translateText`; other fields, such as `labels`, are ignored."""

    mime_type: Annotated[MimeType | None, Meta(description="default: text/html")] = None
    model: Annotated[str, Meta(description="answered as it is: a pod has one model")] = ""


class Content(Struct):
    """The body of `:detectLanguage`."""

    content: Annotated[str, Meta(description="one text")]


class LanguagesQuery(Struct, rename="camel"):
    """The query of `/supportedLanguages`."""

    display_language_code: Annotated[str, Meta(description="code of the language that names are in")] = ""


_CONTENT = msgspec.json.Decoder(Content)


def find(body: TextsPair, offer: Offer) -> Peek:
    """The pair, the texts and the glossary of a translation."""
    source = CODES.source(body.source_language_code, offer.listed_sources)
    target = CODES.tag(body.target_language_code, offer.listed_targets)
    glossary = body.glossary_config
    return peek_of(
        Need(source, (target,), tuple(body.contents)),
        None,
        () if glossary is None else (glossary.glossary_id,),
    )


def call(body: Texts, found: Peek, site: Site) -> Translate:
    """Up to 1,024 texts of one pair."""
    (need,) = found.needs
    site.limits.check_texts(len(need.texts), MAX_TEXTS)
    is_html = body.mime_type is not MimeType.PLAIN
    wanted = not_blank(need.texts)
    request = TranslationRequest(
        wanted, need.targets[0], need.source, format=Format.HTML if is_html else Format.PLAIN
    )

    def render(results: Results) -> Answer:
        done = put_back(need.texts, results[0] if results else (), need.source)
        translations = [_rendered(each, body, is_html=is_html) for each in done]
        answer: dict[str, Any] = {"translations": translations}
        if body.glossary_config is not None:
            config = {
                "glossary": body.glossary_config.glossary,
                "ignoreCase": body.glossary_config.ignore_case,
            }
            answer["glossaryTranslations"] = [{**each, "glossaryConfig": config} for each in translations]
        return json_answer(answer)

    return Translate((request,) if wanted else (), found.characters, render, glossary_ids=found.glossary_ids)


def read_detection(request: Request, _: Site) -> Detect:
    """One text."""
    return Detect((read_json(request.body, _CONTENT).content,), _detections)


def respond_languages(request: Request, site: Site) -> Answer:
    """Every language, with its name where `displayLanguageCode` is the code of the language that names are in."""
    offer, wanted = site.offer, last(request.query_fields(), "displayLanguageCode")
    targets = set(offer.all_targets)
    items: list[dict[str, Any]] = []
    for tag in offer.all_languages:
        item: dict[str, Any] = {"languageCode": CODES.code(tag)}
        if wanted:
            item["displayName"] = name_in(tag, CODES.locale(wanted))
        items.append(item | {"supportSource": tag in offer.targets, "supportTarget": tag in targets})
    return json_answer({"languages": items})


def refuse(request: Request, _: Site) -> NoReturn:
    """What Google has at a project, and is not served."""
    raise UnknownPathError(f"{request.method} {request.path[:100]} is not served here")


def _rendered(result: TranslationResult, body: Texts, *, is_html: bool) -> dict[str, Any]:
    answer = {"translatedText": escaped(result.text) if is_html else result.text}
    if not body.source_language_code:
        answer["detectedLanguageCode"] = CODES.code(result.source_lang)
    if body.model:
        answer["model"] = body.model
    return answer


def _detections(found: Sequence[detection.Detection]) -> Answer:
    return json_answer(
        {
            "languages": [
                {"languageCode": CODES.code(each.tag), "confidence": each.confidence} for each in found
            ]
        }
    )


READING = Reading(json_of(TextsPair), find, call, json_of(Texts))
_GET, _POST = frozenset({"GET"}), frozenset({"POST"})


def _endpoints() -> Iterator[Endpoint]:
    for parent in ("/v3/projects/{project}", "/v3/projects/{project}/locations/{location}"):
        yield Endpoint(
            API,
            EndpointKind.TRANSLATE,
            f"{parent}:translateText",
            _POST,
            reading=READING,
            operation=Operation("Translate up to 1,024 texts.", {JSON_TYPE: Texts}),
        )
        yield Endpoint(
            API,
            EndpointKind.DETECT,
            f"{parent}:detectLanguage",
            _POST,
            detect=read_detection,
            operation=Operation("Detect the language of a text.", {JSON_TYPE: Content}),
        )
        yield Endpoint(
            API,
            EndpointKind.RESPOND,
            f"{parent}/supportedLanguages",
            _GET,
            respond=respond_languages,
            operation=Operation(
                "List the languages. With `displayLanguageCode`, their names are in that language.",
                query=LanguagesQuery,
            ),
        )
    methods = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
    yield Endpoint(API, EndpointKind.RESPOND, "/v3/projects/{rest}", methods, respond=refuse, needs_key=False)


ENDPOINTS = tuple(_endpoints())
