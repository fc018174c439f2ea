"""What browser extensions send: the free endpoint of DeepLX, and the custom service of Immersive Translate.

DeepLX has its endpoint at `/translate`, where its requests look like those of Dragoman's own API; here it is `/deeplx`.
The path of the other is the user's choice; here it is `/imme`, as at MTranServer.

Sources: `service/service.go` and `translate/translate.go` of https://github.com/OwO-Network/DeepLX, and
https://immersivetranslate.com/en/docs/services/custom/.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Meta, Struct

from dragoman_protocols import errors
from dragoman_protocols.bodies import JSON_TYPE
from dragoman_protocols.calls import Peek, Reading, Results, Translate, json_of, peek_of
from dragoman_protocols.deepl.codes import source_code, target_tag
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import EmptyTextError, ErrorTable, RequestError
from dragoman_protocols.languages import Codes
from dragoman_protocols.messages import CORS_HEADERS, Answer, Request, cors_answer, error_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Format, TranslationRequest, not_blank, put_back

ERRORS = ErrorTable(
    errors.STATUSES
    | {
        errors.EmptyTextError: 404,
        errors.KeyRefusedError: 401,
        errors.UnavailableError: 503,
        errors.CapacityError: 429,
    }
)
"""Statuses of DeepLX; Immersive Translate names none."""

CODES = Codes(
    {
        "zh": "zh-Hans",
        "zh-cn": "zh-Hans",
        "zh-tw": "zh-Hant",
        "iw": "he",
        "jw": "jv",
        "no": "nb",
        "tl": "fil",
    },
    {"zh": "zh-CN", "zh-Hans": "zh-CN", "zh-Hant": "zh-TW", "nb": "no", "jv": "jw"},
)

PLACEHOLDER = re.compile(r"</?[a-z]+\d+>")
"""What Immersive Translate can be set to write for the markup of a page: `<b0></b0>`."""


class DeepLXPair(Struct):
    """What a router reads of the body of `POST /deeplx`."""

    text: str
    target_lang: Annotated[str, Meta(description='DeepL code of the translation, such as "DE" or "PT-BR"')]
    source_lang: Annotated[
        str | None, Meta(description='DeepL code of the text; default, empty and "auto": detected')
    ] = None


class DeepLXRequest(DeepLXPair):
    """The body of `POST /deeplx`."""

    tag_handling: Literal["", "html", "xml"] = ""


class ImmersiveRequest(Struct):
    """The body of `POST /imme`."""

    source_lang: Annotated[
        str, Meta(description='code of the texts, such as "zh-CN"; "auto": detected, text by text')
    ]
    target_lang: Annotated[str, Meta(description="code of the translations")]
    text_list: Annotated[list[str], Meta(description="texts, each translated by itself")]


class BrowserExtensions(Api):
    """Both."""

    name = "browser-extensions"
    key_parameters = ("token",)
    key_place = "in the parameter `token`"
    cors = True

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"code", "message"}`."""
        status = ERRORS[error]
        return error_answer(error, status, {"code": status, "message": str(error)}, CORS_HEADERS)


def find_deeplx(body: DeepLXPair, offer: Offer) -> Peek:
    """The pair and the text."""
    need = _need(body.source_lang, body.target_lang, (body.text,), offer)
    (target,) = need.targets
    # DeepL's clients have to name a variant of English; see `target_tag`.
    return peek_of(
        need._replace(targets=(target_tag(target, offer),)) if target.lower().startswith("en-") else need
    )


def call_deeplx(body: DeepLXRequest, found: Peek, _: Site) -> Translate:
    """One text."""
    if not body.text.strip():
        raise EmptyTextError("no text to translate")
    written = Format(body.tag_handling or Format.PLAIN)

    def render(results: Results) -> Answer:
        ((result,),) = results
        return cors_answer(
            {
                "code": 200,
                "id": time.time_ns() // 1_000_000,
                "data": result.text,
                "alternatives": [],
                "source_lang": source_code(result.source_lang),
                "target_lang": body.target_lang,
                "method": "Free",
            }
        )

    return _call(found, written, render)


def find_immersive(body: ImmersiveRequest, offer: Offer) -> Peek:
    """The pair and the texts."""
    return peek_of(_need(body.source_lang, body.target_lang, tuple(body.text_list), offer))


def call_immersive(_: ImmersiveRequest, found: Peek, site: Site) -> Translate:
    """Texts of one pair; blank ones come back as they are."""
    (need,) = found.needs
    site.limits.check_texts(len(need.texts))
    written = Format.HTML if any(map(PLACEHOLDER.search, need.texts)) else Format.PLAIN

    def render(results: Results) -> Answer:
        each = put_back(need.texts, results[0] if results else (), need.source)
        return cors_answer(
            {
                "translations": [
                    {"detected_source_lang": CODES.code(result.source_lang), "text": result.text}
                    for result in each
                ]
            }
        )

    return _call(found, written, render)


def _need(source: str | None, target: str, texts: tuple[str, ...], offer: Offer) -> Need:
    tag = CODES.tag(target, offer.listed_targets)
    return Need(CODES.source(source, offer.listed_sources), (tag,), texts, keeps=True)


def _call(found: Peek, written: Format, render: Callable[[Results], Answer]) -> Translate:
    (need,) = found.needs
    wanted = not_blank(need.texts)
    request = TranslationRequest(wanted, need.targets[0], need.source, format=written)
    return Translate((request,) if wanted else (), found.characters, render)


API = BrowserExtensions()
DEEPLX = Reading(json_of(DeepLXPair), find_deeplx, call_deeplx, json_of(DeepLXRequest))
IMMERSIVE = Reading(json_of(ImmersiveRequest), find_immersive, call_immersive)
_POST = frozenset({"POST"})
ENDPOINTS = (
    *(
        Endpoint(
            API,
            EndpointKind.TRANSLATE,
            path,
            _POST,
            reading=DEEPLX,
            operation=Operation("Translate a text.", {JSON_TYPE: DeepLXRequest}),
        )
        # Some clients add `/translate` to the address that they are given.
        for path in ("/deeplx", "/deeplx/translate")
    ),
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        "/imme",
        _POST,
        reading=IMMERSIVE,
        operation=Operation("Translate texts.", {JSON_TYPE: ImmersiveRequest}),
    ),
)
