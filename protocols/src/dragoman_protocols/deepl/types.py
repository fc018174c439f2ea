"""Bodies and queries of DeepL's API, for the OpenAPI document; requests are read with `Fields`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

MAX_INSTRUCTIONS = 10
MAX_INSTRUCTION_CHARS = 300
MAX_GLOSSARIES = 5

Formality = Literal["default", "more", "less", "prefer_more", "prefer_less"]
Instruction = Annotated[str, Meta(max_length=MAX_INSTRUCTION_CHARS)]
SourceCode = Annotated[
    str | None, Meta(description='DeepL code of the texts, such as "EN"; default: detected')
]


class TranslateShape(Struct):
    """The body of `POST /v2/translate`."""

    text: Annotated[list[str], Meta(min_length=1, description="texts, each translated by itself")]
    target_lang: Annotated[str, Meta(description='DeepL code of the translations, such as "DE" or "PT-BR"')]
    source_lang: SourceCode = None
    context: Annotated[
        str | None, Meta(description="text that helps to understand and is not translated")
    ] = None
    split_sentences: Literal["0", "1", "nonewlines"] | None = None
    preserve_formatting: bool | None = None
    formality: Formality | None = None
    glossary_id: Annotated[str | None, Meta(description="requires source_lang")] = None
    glossary_ids: Annotated[list[str], Meta(max_length=MAX_GLOSSARIES)] | None = None
    style_id: Annotated[str | None, Meta(description="a list of style rules, of the target language")] = None
    tag_handling: Literal["xml", "html"] | None = None
    tag_handling_version: Literal["v1", "v2"] | None = None
    outline_detection: Annotated[bool | None, Meta(description="accepted and without effect")] = None
    ignore_tags: list[str] | None = None
    splitting_tags: list[str] | None = None
    non_splitting_tags: list[str] | None = None
    model_type: Literal["quality_optimized", "prefer_quality_optimized", "latency_optimized"] | None = None
    custom_instructions: Annotated[list[Instruction], Meta(max_length=MAX_INSTRUCTIONS)] | None = None
    show_billed_characters: Annotated[
        bool | None, Meta(description="without effect: they are always in the answer")
    ] = None


class LanguagesShape(Struct):
    """The query of `/v2/languages`."""

    type: Annotated[
        Literal["source", "target"] | None, Meta(description="which languages are listed; default: source")
    ] = None


class ResourceShape(Struct):
    """The query of `/v3/languages`."""

    resource: Annotated[
        str, Meta(description="translate_text, translate_document, glossary or style_rules; for others: none")
    ]
    include: Annotated[list[str], Meta(description="beta, external: without effect")] = []


class PairShape(Struct):
    """The query that names a dictionary."""

    source_lang: Annotated[str, Meta(description="language without a region")]
    target_lang: Annotated[str, Meta(description="language without a region")]


class DictionaryShape(Struct):
    """One dictionary of a glossary."""

    source_lang: Annotated[str, Meta(description='language without a region, such as "en"')]
    target_lang: str
    entries: Annotated[str, Meta(description="one entry a line, source and target; or a file in TMX")]
    entries_format: Literal["tsv", "csv", "tmx"]


class GlossaryShape(DictionaryShape):
    """The body of `POST /v2/glossaries`."""

    name: str


class MultilingualShape(Struct):
    """The body of `POST /v3/glossaries`."""

    name: str
    dictionaries: Annotated[list[DictionaryShape], Meta(min_length=1)]


class ChangeShape(Struct):
    """The body of `PATCH /v3/glossaries/{glossary_id}`."""

    name: str | None = None
    dictionaries: Annotated[list[DictionaryShape], Meta(max_length=1)] | None = None


RulesShape = dict[str, dict[str, str]]
"""The body of `PUT /v3/style_rules/{style_id}/configured_rules`: options by rule by category."""


class InstructionShape(Struct):
    """A custom instruction of a list of style rules."""

    label: Annotated[str, Meta(min_length=1, max_length=MAX_INSTRUCTION_CHARS)]
    prompt: Annotated[str, Meta(min_length=1, max_length=MAX_INSTRUCTION_CHARS)]
    source_language: Annotated[
        str | None, Meta(description="source language that it is for; default: any")
    ] = None


class NameShape(Struct):
    """The body of `PATCH /v3/style_rules/{style_id}`."""

    name: str


class StyleShape(NameShape, kw_only=True):
    """The body of `POST /v3/style_rules`."""

    language: Annotated[str, Meta(description="target language, without a region")]
    configured_rules: RulesShape | None = None
    custom_instructions: list[InstructionShape] | None = None


class PageShape(Struct):
    """The query of `GET /v3/style_rules`."""

    page: Annotated[int, Meta(ge=0)] = 0
    page_size: Annotated[int, Meta(ge=1, le=25)] = 10
    detailed: Annotated[bool, Meta(description="with rules and instructions")] = False


class DocumentShape(Struct):
    """The form of `POST /v2/document`; options of `/v2/translate` are fields of it too."""

    file: Annotated[
        str, Meta(description="the document, with its name", extra_json_schema={"format": "binary"})
    ]
    target_lang: str
    source_lang: SourceCode = None
    filename: Annotated[str | None, Meta(description="the file's name, where its part has none")] = None
    output_format: Annotated[
        str | None, Meta(description="the ending of the file's name; others are refused")
    ] = None
    formality: Formality | None = None
    glossary_id: str | None = None
    style_id: str | None = None
    memory: Annotated[
        str | None,
        Meta(description="a translation memory in TMX, as a file", extra_json_schema={"format": "binary"}),
    ] = None


class DocumentKeyShape(Struct):
    """The body of `POST /v2/document/{document_id}` of its result, and to cancel it."""

    document_key: Annotated[str, Meta(description="from the answer of the upload")]
