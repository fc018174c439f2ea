"""What Azure's API tells without translating: languages, and which one a text is in."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import langcodes
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from dragoman_protocols.detection import detect
from dragoman_protocols.offer import name_in, offer_of
from dragoman_service.dialects.azure.dialect import V3, azure, check_size, version_of
from dragoman_service.dialects.azure.errors import AzureRefusal
from dragoman_service.dialects.azure.shapes import Item, Items
from dragoman_service.dialects.bodies import read_json
from dragoman_service.http.answering import Answering
from dragoman_service.http.work import in_thread_if_long

RIGHT_TO_LEFT = frozenset({"Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa"})

SCOPES = {V3: ("translation", "transliteration", "dictionary")}
SCOPES_2026 = ("translation", "transliteration", "models")


async def languages(answering: Answering, request: Request, model: str) -> Response:
    """Answer `GET /languages?api-version=…[&scope=…]`.

    Args:
        answering: See there.
        request: Its `Accept-Language` says in which language the names are.
        model: Name of what translates.
    """
    dialect = azure(request, answering.max_texts)

    async def reply(body: bytes) -> Response:
        del body
        version = version_of(request)
        known = SCOPES.get(version, SCOPES_2026)
        scopes = [scope for scope in request.query_params.get("scope", "").split(",") if scope] or list(known)
        for scope in scopes:
            if scope not in known:
                raise AzureRefusal(400001, f"scope: expected {', '.join(known)}")
        locale = request.headers.get("Accept-Language", "en").split(",")[0].split(";")[0].strip() or "en"
        offer = offer_of([answering.translator.languages]).all_languages
        content: dict[str, Any] = {scope: [model] if scope == "models" else {} for scope in scopes}
        if "translation" in scopes:
            content["translation"] = await asyncio.to_thread(
                lambda: {tag: _described(tag, locale, version, model) for tag in offer}
            )
        tag = f'"{hashlib.sha256(json.dumps(content).encode()).hexdigest()[:32]}"'
        headers = {"ETag": tag, "X-RequestId": dialect.request_id}
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers=headers)
        return JSONResponse(content, headers=headers)

    return await answering.inform(request, dialect, reply)


def _described(tag: str, locale: str, version: str, model: str) -> dict[str, Any]:
    script = langcodes.Language.get(tag).maximize().script
    described: dict[str, Any] = {
        "name": name_in(tag, locale),
        "nativeName": name_in(tag, tag),
        "dir": "rtl" if script in RIGHT_TO_LEFT else "ltr",
    }
    return described if version == V3 else described | {"models": [model]}


async def detection(answering: Answering, request: Request) -> Response:
    """Answer `POST /detect?api-version=3.0`.

    Args:
        answering: See there.
        request: Its body is an array of texts.
    """
    dialect = azure(request, answering.max_texts)

    async def reply(body: bytes) -> Response:
        if version_of(request) != V3:
            raise AzureRefusal(400021, f"/detect is part of api-version {V3} alone")
        items: list[Item] = await in_thread_if_long(len(body), lambda: read_json(body, Items))
        texts = [item.text for item in items]
        check_size(((text, 1) for text in texts), answering.max_texts)
        sources = offer_of([answering.translator.languages]).sources
        found = await asyncio.to_thread(lambda: [_detected(text, sources) for text in texts])
        return JSONResponse(found, headers={"X-RequestId": dialect.request_id})

    return await answering.inform(request, dialect, reply)


def _detected(text: str, sources: tuple[str, ...]) -> dict[str, Any]:
    found = detect(text)
    return {
        "language": found.tag,
        "score": found.confidence,
        "isTranslationSupported": found.tag in sources or found.tag.split("-")[0] in sources,
        "isTransliterationSupported": False,
    }
