"""The API's bodies, for the OpenAPI document; requests are read leniently, by `fields`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field


class LibreTranslateRequest(BaseModel):
    """`/translate`, as JSON, as a form or in the query."""

    q: str | list[str] = Field(description="one text, or several")
    source: str = Field(description='code of the texts\' language, or "auto"')
    target: str = Field(description="code of the translation's language")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(0, ge=0, le=9, description="further translations of each text")
    api_key: str = Field("", description="not looked at")


class Detected(BaseModel):
    """A language that a text is in."""

    confidence: float = Field(ge=0, le=100)
    language: str


class LibreTranslateResponse(BaseModel):
    """Its answer; with lists where a list was asked with."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = Field(None, description="with source auto alone")
    alternatives: list[str] | list[list[str]] | None = Field(None, description="where asked for")


class LibreTranslateError(BaseModel):
    """Every answer that is no success."""

    error: str


class DetectRequest(BaseModel):
    """`/detect`, as JSON, as a form or in the query."""

    q: str | list[str] = Field(description="a text; several are taken as one")
    api_key: str = Field("", description="not looked at")


class Listed(BaseModel):
    """A language that can be translated."""

    code: str
    name: str = Field(description="in English")
    targets: list[str] = Field(description="codes of what it can be translated into")


class Translated(BaseModel):
    """Where a translated file waits."""

    translatedFileUrl: str


class SentFile(BaseModel):
    """`/translate_file`, as a form of several parts."""

    file: str = Field(json_schema_extra={"format": "binary"})
    source: str = Field(description='code of the file\'s language, or "auto"')
    target: str = Field(description="code of the translation's language")
    api_key: str = Field("", description="not looked at")


ERRORS = {
    400: "the request is wrong, too long, or not of this pod's languages",
    429: "there is too much to do: ask again after Retry-After",
    500: "the engine failed, or took too long",
    503: "the pod loads, or is about to leave: ask again, or another one",
}
