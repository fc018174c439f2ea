"""What Crowdin sends to an app with the module `custom-mt`.

The address of an app is its maker's choice; here it is `/crowdin/translate`. The app's JSON Web Token, which Crowdin
sends as a bearer token, is no key: a router takes the key from the query.

Sources: https://support.crowdin.com/developer/crowdin-apps-module-custom-mt/, and `out/modules/custom-mt` of
https://www.npmjs.com/package/@crowdin/app-project-module 3.2.2, which answers such requests.
"""

from __future__ import annotations

import re
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta, Struct

from dragoman_protocols import errors
from dragoman_protocols.bodies import JSON_TYPE, read_json
from dragoman_protocols.calls import NOTHING, Peek, Reading, Results, Translate, peek_of
from dragoman_protocols.endpoints import Api, Endpoint, EndpointKind, Operation
from dragoman_protocols.errors import ErrorTable, InvalidFieldError, RequestError
from dragoman_protocols.forms import last
from dragoman_protocols.languages import Codes
from dragoman_protocols.messages import Answer, Request, error_answer, json_answer
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need
from dragoman_protocols.site import Site
from dragoman_protocols.translation import Format, TranslationRequest, TranslationResult, not_blank, put_back

ERRORS = ErrorTable(errors.STATUSES | {errors.UnavailableError: 503, errors.CapacityError: 429})
"""Statuses; Crowdin names none."""

CODES = Codes({"zh-cn": "zh-Hans", "zh-tw": "zh-Hant", "no": "nb", "tl": "fil", "iw": "he"}, {})
"""Source: https://support.crowdin.com/developer/language-codes/"""

PROTECTED = re.compile(r"<[^<>]*\b(?:notranslate|translate=[\"']?no)\b")
"""Crowdin wraps in such tags what must not be translated; strings with them are read as HTML."""

PROBE = ("en", "de", ("validation",))
"""Crowdin's test request. The answer has no translations and does not depend on the languages served."""


class CrowdinString(Struct):
    """A string with its context, which is sent where the manifest has `withContext`."""

    text: Annotated[str | dict[str, str], Meta(description="a string, or its plural forms by their names")]


class CrowdinRequest(Struct, rename="camel"):
    """The body of `POST /crowdin/translate`."""

    strings: Annotated[list[str | CrowdinString], Meta(description="each translated by itself")] = []
    strings_url: Annotated[str, Meta(description="refused: set `batchSize` in the manifest")] = ""


class CrowdinQuery(Struct):
    """The parameters of `POST /crowdin/translate`."""

    source: Annotated[str, Meta(description='Crowdin code of the strings, such as "en"')]
    target: Annotated[str, Meta(description='Crowdin code of the translations, such as "zh-CN"')]
    project_id: Annotated[str, Meta(description="ignored")] = ""


_BODY = msgspec.json.Decoder(CrowdinRequest)


class Crowdin(Api):
    """The API."""

    name = "crowdin"
    key_parameters = ("token",)
    key_place = "in the parameter `token`"

    def error(self, error: RequestError, _: Request) -> Answer:
        """`{"error": {"message"}}`."""
        return error_answer(error, ERRORS[error], {"error": {"message": str(error)}})


class Parsed(NamedTuple):
    """A request, checked for what is not served.

    Args:
        source: Crowdin code.
        target: The same.
    """

    source: str
    target: str
    texts: tuple[str, ...]


def parse(request: Request) -> Parsed:
    """The codes and the strings; none of the probe."""
    fields = request.query_fields()
    body = read_json(request.body, _BODY)
    if body.strings_url:
        raise InvalidFieldError(
            "stringsUrl is not fetched: set batchSize in the app's manifest, for example to 50"
        )
    source, target = (last(fields, name) or "" for name in ("source", "target"))
    if not source or not target:
        raise InvalidFieldError(f"the parameter {'target' if source else 'source'} is required")
    texts = tuple(map(_text, body.strings))
    return Parsed(source, target, () if (source, target, texts) == PROBE else texts)


def find(parsed: Parsed, offer: Offer) -> Peek:
    """The pair and the strings."""
    source = CODES.source(parsed.source, offer.listed_sources)
    target = CODES.tag(parsed.target, offer.listed_targets)
    return peek_of(Need(source, (target,), parsed.texts)) if parsed.texts else NOTHING


def call(_: Parsed, found: Peek, site: Site) -> Translate:
    """Strings of one pair; blank ones come back as they are, and those with protected parts are read as HTML."""
    if not found.needs:
        return Translate((), 0, lambda _: _answer([]))
    (need,) = found.needs
    site.limits.check_texts(len(need.texts))
    is_html = [PROTECTED.search(text) is not None for text in need.texts]
    groups = {
        written: [
            text for text, html in zip(need.texts, is_html, strict=True) if html is (written is Format.HTML)
        ]
        for written in (Format.PLAIN, Format.HTML)
    }
    requests = tuple(
        TranslationRequest(
            wanted, need.targets[0], need.source, format=written, ignore_tags=frozenset({"notranslate"})
        )
        for written, texts in groups.items()
        if (wanted := not_blank(texts))
    )

    def render(results: Results) -> Answer:
        return _answer(_merged(need, is_html, groups, results))

    return Translate(requests, found.characters, render)


def _answer(each: list[TranslationResult]) -> Answer:
    return json_answer({"data": {"translations": [result.text for result in each]}})


def _merged(
    need: Need, is_html: list[bool], groups: dict[Format, list[str]], results: Results
) -> list[TranslationResult]:
    done = iter(results)
    found = {
        written: iter(put_back(texts, next(done) if not_blank(texts) else (), need.source))
        for written, texts in groups.items()
    }
    return [next(found[Format.HTML if html else Format.PLAIN]) for html in is_html]


def _text(string: str | CrowdinString) -> str:
    text = string if isinstance(string, str) else string.text
    if isinstance(text, str):
        return text
    raise InvalidFieldError("strings with plural forms are not translated: send each form as a string")


API = Crowdin()
READING = Reading(parse, find, call)
ENDPOINTS = (
    Endpoint(
        API,
        EndpointKind.TRANSLATE,
        "/crowdin/translate",
        frozenset({"POST"}),
        reading=READING,
        operation=Operation(
            "Translate strings.", {JSON_TYPE: CrowdinRequest}, CrowdinQuery, query_beside_body=True
        ),
    ),
)
