"""What Google's API reads and answers.

Source: https://cloud.google.com/translate/docs/reference/rest/v2/translate
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, Field

from dragoman_service.dialects.bodies import FIRST_PROBLEM


class GoogleFormat(StrEnum):
    """How texts are written."""

    HTML = "html"
    TEXT = "text"


class Detection(BaseModel):
    """The parameters of a detection."""

    q: str | Annotated[list[str], FIRST_PROBLEM] = Field(description="one text, or several")

    @property
    def texts(self) -> list[str]:
        """The texts as a list."""
        return [self.q] if isinstance(self.q, str) else self.q


class Translation(Detection):
    """The parameters of a translation; in the query, in a form or in a JSON body."""

    target: str = Field(min_length=1, description="code of the language to translate into")
    source: str | None = Field(None, description="code of the texts' language; left out: detected")
    format: GoogleFormat | None = Field(None, description="html, which is the default, or text")
    model: str | None = Field(None, description="answered as it is: the pod has one model")


class TranslatedText(BaseModel):
    """One text's translation."""

    translatedText: str
    detectedSourceLanguage: str | None = Field(None, description="where the source was not given")
    model: str | None = Field(None, description="where it was")


class TranslatedTexts(BaseModel):
    """All texts' translations."""

    translations: list[TranslatedText]


class TranslationAnswer(BaseModel):
    """The answer of a translation."""

    data: TranslatedTexts


class DetectedText(BaseModel):
    """One text's language."""

    language: str
    confidence: float = Field(ge=0, le=1)
    isReliable: bool


class DetectedTexts(BaseModel):
    """All texts' languages: for each a list of one."""

    detections: list[list[DetectedText]]


class DetectionAnswer(BaseModel):
    """The answer of a detection."""

    data: DetectedTexts


class ListedLanguage(BaseModel):
    """One language."""

    language: str
    name: str | None = Field(None, description="where it was asked for")


class ListedLanguages(BaseModel):
    """All languages."""

    languages: list[ListedLanguage]


class LanguagesAnswer(BaseModel):
    """The answer of a list of languages."""

    data: ListedLanguages


class GoogleErrorItem(BaseModel):
    """One cause."""

    message: str
    domain: str
    reason: str


class GoogleErrorBody(BaseModel):
    """What went wrong."""

    code: int
    message: str
    errors: list[GoogleErrorItem]
    status: str


class GoogleErrorResponse(BaseModel):
    """Every answer that is no success."""

    error: GoogleErrorBody
