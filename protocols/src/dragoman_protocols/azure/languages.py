"""What Azure's API answers without translating: the languages, and which one a text is in."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman_protocols.azure.head import AzureError, id_headers, parameters, version_of
from dragoman_protocols.azure.translate import check_characters, check_number, read_texts, score
from dragoman_protocols.azure.types import Version
from dragoman_protocols.calls import Detect
from dragoman_protocols.forms import last
from dragoman_protocols.messages import Answer, Request, json_answer
from dragoman_protocols.offer import name_in
from dragoman_protocols.scripts import is_right_to_left
from dragoman_protocols.site import Site

if TYPE_CHECKING:
    from dragoman_protocols.detection import Detection

SCOPES = {
    Version.V3: ("translation", "transliteration", "dictionary"),
    Version.V2026: ("translation", "transliteration", "models"),
}


def respond_languages(request: Request, site: Site) -> Answer:
    """The languages by scope, with names in the language of `Accept-Language`."""
    version = version_of(request)
    known = SCOPES[version]
    scopes = [
        scope.strip() for scope in (last(parameters(request), "scope") or "").split(",") if scope.strip()
    ]
    if any(scope not in known for scope in scopes):
        raise AzureError(400001, f"scope: expected {', '.join(known)}")
    scopes = scopes or list(known)
    content: dict[str, Any] = {scope: list(site.models) if scope == "models" else {} for scope in scopes}
    if "translation" in scopes:
        locale = _locale(request)
        content["translation"] = {
            tag: _described(tag, locale, site.models if version is Version.V2026 else ())
            for tag in site.offer.all_languages
        }
    answer = json_answer(content)
    tag = f'"{hashlib.sha256(answer.body).hexdigest()[:32]}"'
    headers = (("ETag", tag), *id_headers(request))
    if request.header(b"if-none-match") == tag.encode():
        return Answer(304, b"", headers)
    return answer._replace(headers=headers)


def read_detection(request: Request, site: Site) -> Detect:
    """The texts of a body of version 3.0."""
    if version_of(request) is not Version.V3:
        raise AzureError(400021, f"/detect is part of api-version {Version.V3} alone")
    texts = read_texts(request.body)
    check_number(len(texts), site.limits)
    check_characters(sum(max(1, len(text)) for text in texts))
    sources, headers = site.offer.sources, id_headers(request)

    def render(found: Sequence[Detection]) -> Answer:
        return json_answer([_detected(each, sources) for each in found], headers=headers)

    return Detect(texts, render)


def _locale(request: Request) -> str:
    accepted = (request.header(b"accept-language") or b"").decode("latin-1")
    return accepted.split(",")[0].split(";")[0].strip() or "en"


def _described(tag: str, locale: str, models: tuple[str, ...]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "name": name_in(tag, locale),
        "nativeName": name_in(tag, tag),
        "dir": "rtl" if is_right_to_left(tag) else "ltr",
    }
    return described | {"models": list(models)} if models else described


def _detected(found: Detection, sources: tuple[str, ...]) -> dict[str, Any]:
    return {
        "language": found.tag,
        "score": score(found.confidence),
        "isTranslationSupported": found.tag in sources or found.tag.split("-")[0] in sources,
        "isTransliterationSupported": False,
    }
