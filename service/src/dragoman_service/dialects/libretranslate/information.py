"""What the API tells without translating: languages, limits, and which language a text is in."""

from __future__ import annotations

from typing import Any

from dragoman_protocols.detection import NOTHING, Detection
from dragoman_protocols.errors import InvalidFieldError, UnknownLanguageError
from dragoman_protocols.languages import language
from dragoman_protocols.offer import Offer
from dragoman_service.dialects.libretranslate.codes import AUTO, from_tag
from dragoman_service.dialects.libretranslate.dialect import UNDETECTED, Limits, detected_language
from dragoman_service.dialects.libretranslate.fields import Fields, missing
from dragoman_service.files.kinds import READERS

FRONTEND_TIMEOUT_MS = 500
"""How long LibreTranslate's own page waits for the next keystroke before it asks."""

FAVOURITE = "en"
"""The target that a page begins with, where it is served."""


def asked_text(fields: Fields) -> str:
    """The text whose language is asked for; several are taken as one.

    Raises:
        InvalidFieldError: There is none, or it is no text.
    """
    asked = fields.values.get("q")
    if not asked:
        raise missing("q")
    texts = asked if isinstance(asked, list) else [asked]
    if not all(isinstance(text, str) for text in texts):
        raise InvalidFieldError("Invalid request: q parameter is neither a string nor a list of strings")
    return "\n".join(texts)


def detections(found: Detection) -> list[dict[str, Any]]:
    """The answer of `/detect`."""
    return [UNDETECTED if found == NOTHING else detected_language(found.tag, found.confidence)]


def listed(offer: Offer) -> list[dict[str, Any]]:
    """The answer of `/languages`."""
    return [
        {**_named(source), "targets": [from_tag(target) for target in offer.targets[source]]}
        for source in offer.sources
    ]


def settings_of(limits: Limits, offer: Offer) -> dict[str, Any]:
    """The answer of `/frontend/settings`.

    Args:
        limits: What one request may have.
        offer: What can be translated.
    """
    targets = offer.all_targets
    first = targets[0] if targets and FAVOURITE not in targets else FAVOURITE
    return {
        "charLimit": limits.max_chars,
        "batchLimit": limits.max_texts,
        "frontendTimeout": FRONTEND_TIMEOUT_MS,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": True,
        "supportedFilesFormat": list(READERS),
        "language": {"source": {"code": AUTO, "name": "Auto Detect"}, "target": _named(first)},
    }


def _named(tag: str) -> dict[str, str]:
    try:
        return {"code": from_tag(tag), "name": language(tag).english}
    except UnknownLanguageError:
        return {"code": tag, "name": tag}
