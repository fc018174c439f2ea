"""What LibreTranslate's API reads and answers, for the OpenAPI document; requests are read leniently, by `fields`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Key = Annotated[str, Meta(description="API key, where the router requires one")]


class LibreTranslateRequest(Struct):
    """`/translate`, as JSON, as a form or in the query."""

    q: Annotated[str | list[str], Meta(description="one text, or several")]
    source: Annotated[str, Meta(description='code of the texts\' language, or "auto"')]
    target: Annotated[str, Meta(description="code of the translation's language")]
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Meta(ge=0, le=9, description="further translations of each text")] = 0
    api_key: Key = ""


class Detected(Struct):
    """A language that a text is in."""

    confidence: Annotated[float, Meta(ge=0, le=100)]
    language: str


class LibreTranslateResponse(Struct):
    """Its answer; with lists where `q` was a list."""

    translatedText: str | list[str]
    detectedLanguage: Annotated[
        Detected | list[Detected] | None, Meta(description="only with source auto")
    ] = None
    alternatives: Annotated[
        list[str | list[str]] | None, Meta(description="where the request has alternatives")
    ] = None


class LibreTranslateError(Struct):
    """Every answer that is no success."""

    error: str


class DetectRequest(Struct):
    """`/detect`, as JSON, as a form or in the query."""

    q: Annotated[str | list[str], Meta(description="a text; several are taken as one")]
    api_key: Key = ""


class ListedLanguage(Struct):
    """A language that can be translated."""

    code: str
    name: Annotated[str, Meta(description="in English")]
    targets: Annotated[list[str], Meta(description="codes of what it can be translated into")]


class NamedLanguage(Struct):
    """A language."""

    code: str
    name: str


class DefaultLanguages(Struct):
    """The languages that a page begins with."""

    source: NamedLanguage
    target: NamedLanguage


class Settings(Struct):
    """`/frontend/settings`."""

    charLimit: Annotated[int, Meta(description="characters of one text")]
    batchLimit: Annotated[int, Meta(description="texts in one request; -1: no limit")]
    frontendTimeout: Annotated[int, Meta(description="milliseconds from the last keystroke to the request")]
    apiKeys: bool
    keyRequired: bool
    suggestions: bool
    filesTranslation: bool
    supportedFilesFormat: Annotated[list[str], Meta(description="endings of the names of files")]
    language: DefaultLanguages


class Health(Struct):
    """`/health` of a program that is ready."""

    status: str


class FileForm(Struct):
    """`/translate_file`, as a form of several parts."""

    file: Annotated[str, Meta(extra_json_schema={"format": "binary"})]
    source: Annotated[str, Meta(description='code of the file\'s language, or "auto"')]
    target: Annotated[str, Meta(description="code of the translation's language")]
    api_key: Key = ""


class TranslatedFile(Struct):
    """Its answer."""

    translatedFileUrl: str
