"""What Google's API reads and answers.

Source: https://cloud.google.com/translate/docs/reference/rest/v2/translate
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct


class GoogleFormat(StrEnum):
    """How texts are written."""

    HTML = "html"
    TEXT = "text"


class Detection(Struct):
    """The parameters of a detection."""

    q: Annotated[str | list[str], Meta(description="one text, or several")]


class Translation(Struct):
    """The parameters of a translation; in the query, in a form or in a JSON body."""

    q: Annotated[str | list[str], Meta(description="one text, or several")]
    target: Annotated[str, Meta(min_length=1, description="code of the language to translate into")]
    source: Annotated[
        str | None, Meta(description="code of the texts' language; default: detected, text by text")
    ] = None
    format: Annotated[GoogleFormat | None, Meta(description="html, which is the default, or text")] = None
    model: Annotated[str | None, Meta(description="answered as it is: a pod has one model")] = None


class TranslatedText(Struct):
    """One text's translation."""

    translatedText: str
    detectedSourceLanguage: Annotated[str, Meta(description="where the source was not given")] = ""
    model: Annotated[str, Meta(description="where it was given")] = ""


class TranslatedTexts(Struct):
    """All texts' translations."""

    translations: list[TranslatedText]


class TranslationAnswer(Struct):
    """The answer of a translation."""

    data: TranslatedTexts


class DetectedText(Struct):
    """One text's language."""

    language: str
    confidence: Annotated[float, Meta(ge=0, le=1)]
    isReliable: bool


class DetectedTexts(Struct):
    """All texts' languages: for each a list of one."""

    detections: list[list[DetectedText]]


class DetectionAnswer(Struct):
    """The answer of a detection."""

    data: DetectedTexts


class LanguagesQuery(Struct):
    """The parameters of a list of languages."""

    target: Annotated[str | None, Meta(description="code of the language that names are in")] = None


class ListedLanguage(Struct):
    """One language."""

    language: str
    name: Annotated[str, Meta(description="where the request has a target")] = ""


class ListedLanguages(Struct):
    """All languages."""

    languages: list[ListedLanguage]


class LanguagesAnswer(Struct):
    """The answer of a list of languages."""

    data: ListedLanguages


class GoogleErrorItem(Struct):
    """One cause."""

    message: str
    domain: str
    reason: str


class GoogleErrorBody(Struct):
    """What went wrong."""

    code: int
    message: str
    errors: list[GoogleErrorItem]
    status: str


class GoogleErrorResponse(Struct):
    """Every answer that is no success."""

    error: GoogleErrorBody
