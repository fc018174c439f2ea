"""What Azure's API reads and answers, in versions 3.0 and 2026-06-06.

Sources: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate and
the client azure-ai-translation-text, 1.0.1 and 2.0.0.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from dragoman_service.dialects.bodies import FIRST_PROBLEM


class TextType(StrEnum):
    """How the texts are written; in any casing."""

    PLAIN = "plain"
    HTML = "html"

    @classmethod
    def _missing_(cls, value: object) -> TextType | None:
        return next((each for each in cls if each == str(value).lower()), None)


class Tone(StrEnum):
    """How the reader is addressed."""

    NEUTRAL = "neutral"
    FORMAL = "formal"
    INFORMAL = "informal"


class Gender(StrEnum):
    """Which grammatical gender is preferred."""

    NEUTRAL = "neutral"
    MALE = "male"
    FEMALE = "female"


class Item(BaseModel):
    """One text of version 3.0."""

    text: str = Field(validation_alias=AliasChoices("Text", "text"))


Items = Annotated[list[Item], FIRST_PROBLEM]
"""The body of version 3.0."""


class Target(BaseModel):
    """What a text of version 2026-06-06 shall become."""

    model_config = ConfigDict(extra="forbid")

    language: str
    script: str | None = None
    tone: Tone = Tone.NEUTRAL
    gender: Gender = Gender.NEUTRAL
    profanityAction: str = Field("NoAction", pattern="^NoAction$")
    profanityMarker: str | None = None
    deploymentName: str | None = Field(None, description="ignored: the pod has one model")
    allowFallback: bool = Field(True, description="ignored: the pod has one model")


class Input(BaseModel):
    """One text of version 2026-06-06."""

    model_config = ConfigDict(extra="forbid")

    text: str
    targets: Annotated[list[Target], FIRST_PROBLEM] = Field(min_length=1)
    language: str | None = None
    script: str | None = None
    textType: TextType = TextType.PLAIN


class Inputs(BaseModel):
    """The body of version 2026-06-06."""

    inputs: Annotated[list[Input], FIRST_PROBLEM] = Field(min_length=1)


class DetectedLanguage(BaseModel):
    """What a source language was taken for."""

    language: str
    score: float = Field(ge=0, le=1)


class TranslatedText(BaseModel):
    """One translation, with `to` in version 3.0 and `language` in 2026-06-06."""

    text: str
    to: str | None = None
    language: str | None = None
    sourceCharacters: int | None = None
    instructionTokens: int | None = None
    responseTokens: int | None = None


class TranslatedItem(BaseModel):
    """One text's translations."""

    detectedLanguage: DetectedLanguage | None = None
    translations: list[TranslatedText]


class TranslatedItems(BaseModel):
    """The answer of version 2026-06-06."""

    value: list[TranslatedItem]


class DetectedItem(DetectedLanguage):
    """One text's language."""

    isTranslationSupported: bool
    isTransliterationSupported: bool


class LanguageItem(BaseModel):
    """One language, and in version 2026-06-06 what translates it."""

    name: str
    nativeName: str
    dir: str
    models: list[str] | None = None


class LanguagesAnswer(BaseModel):
    """The languages, for each scope that was asked for."""

    translation: dict[str, LanguageItem] | None = None
    transliteration: dict[str, object] | None = None
    dictionary: dict[str, object] | None = None
    models: list[str] | None = None


class AzureErrorBody(BaseModel):
    """What went wrong."""

    code: int | str = Field(description="six digits: a number in version 3.0, a string in 2026-06-06")
    message: str


class AzureErrorResponse(BaseModel):
    """Every answer that is no success."""

    error: AzureErrorBody
