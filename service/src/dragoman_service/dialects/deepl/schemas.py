"""What DeepL's requests look like, for the OpenAPI document; `asked` and `glossaries` read them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from dragoman_service.dialects import openapi
from dragoman_service.dialects.deepl.asked import (
    MOST_GLOSSARIES_ASKED,
    MOST_INSTRUCTION_CHARS,
    MOST_INSTRUCTIONS,
)

Instruction = Annotated[str, Field(max_length=MOST_INSTRUCTION_CHARS)]


class TranslateShape(BaseModel):
    """The body of `POST /v2/translate`."""

    text: list[str] = Field(min_length=1, description="texts, each translated by itself")
    target_lang: str = Field(description='DeepL code of the translations, such as "DE" or "PT-BR"')
    source_lang: str | None = Field(None, description='DeepL code of the texts, such as "EN"; else detected')
    context: str | None = Field(None, description="text that helps to understand and is not translated")
    split_sentences: Literal["0", "1", "nonewlines"] | None = None
    preserve_formatting: bool | None = None
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    glossary_id: str | None = Field(None, description="needs source_lang")
    glossary_ids: list[str] | None = Field(None, max_length=MOST_GLOSSARIES_ASKED)
    tag_handling: Literal["xml", "html"] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = None
    outline_detection: bool | None = Field(None, description="taken and without effect")
    ignore_tags: list[str] | None = None
    splitting_tags: list[str] | None = None
    non_splitting_tags: list[str] | None = None
    model_type: Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None = None
    custom_instructions: list[Instruction] | None = Field(None, max_length=MOST_INSTRUCTIONS)
    show_billed_characters: bool | None = Field(None, description="they are shown in any case")


class ErrorShape(BaseModel):
    """Every answer that is no success."""

    message: str
    detail: str | None = None


class DictionaryShape(BaseModel):
    """One dictionary of a glossary."""

    source_lang: str = Field(description='language without a region, such as "en"')
    target_lang: str
    entries: str = Field(description="one entry a line, source and target")
    entries_format: Literal["tsv", "csv"]


class GlossaryShape(DictionaryShape):
    """The body of `POST /v2/glossaries`."""

    name: str


class MultilingualShape(BaseModel):
    """The body of `POST /v3/glossaries`."""

    name: str
    dictionaries: list[DictionaryShape] = Field(min_length=1)


class ChangeShape(BaseModel):
    """The body of `PATCH /v3/glossaries/{glossary_id}`."""

    name: str | None = None
    dictionaries: list[DictionaryShape] | None = Field(None, max_length=1)


class DocumentKeyShape(BaseModel):
    """The body of `POST /v2/document/{document_id}` and of its result."""

    document_key: str = Field(description="as the upload was answered with")


class DocumentShape(BaseModel):
    """The form of `POST /v2/document`; its further fields are those of `/v2/translate` that say how."""

    file: bytes = Field(description="the document, with its name")
    target_lang: str
    source_lang: str | None = None
    filename: str | None = Field(None, description="the file's name, where its part has none")
    output_format: str | None = Field(None, description="the ending of the file's name; others are refused")
    formality: Literal["default", "more", "less", "prefer_more", "prefer_less"] | None = None
    glossary_id: str | None = None


TRANSLATE = openapi.body({openapi.JSON: TranslateShape, openapi.FORM: TranslateShape})
GLOSSARY = openapi.body({openapi.JSON: GlossaryShape, openapi.FORM: GlossaryShape})
GLOSSARY_V3 = openapi.body({openapi.JSON: MultilingualShape})
GLOSSARY_CHANGE = openapi.body({openapi.JSON: ChangeShape})
DICTIONARY = openapi.body({openapi.JSON: DictionaryShape})
LANGUAGES = {
    "parameters": [openapi.query("type", {"enum": ["source", "target"]}, "which languages are listed")]
}
PAIR = {
    "parameters": [
        openapi.query(name, {"type": "string"}, "language without a region", required=True)
        for name in ("source_lang", "target_lang")
    ]
}
DOCUMENT = openapi.body({"multipart/form-data": DocumentShape})
DOCUMENT_KEY = openapi.body({openapi.JSON: DocumentKeyShape, openapi.FORM: DocumentKeyShape})
ERRORS = openapi.errors(
    ErrorShape,
    {
        400: "a field is missing or cannot be taken",
        404: "there is no such glossary, document or route",
        413: "the body, or a text, is too long",
        414: "the address is too long",
        415: "glossaries are written as tab-separated text only",
        429: "there is too much to do",
        456: "a quota is used up",
        500: "the engine failed",
        503: "the pod is loading or leaving, or a document is not done",
        504: "it was not finished in time",
    },
)
