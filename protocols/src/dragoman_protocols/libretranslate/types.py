"""What LibreTranslate's API reads, for the OpenAPI document; requests are read leniently, by `fields`."""

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


class DetectRequest(Struct):
    """`/detect`, as JSON, as a form or in the query."""

    q: Annotated[str | list[str], Meta(description="a text; several are taken as one")]
    api_key: Key = ""


class FileForm(Struct):
    """`/translate_file`, as a form of several parts."""

    file: Annotated[str, Meta(extra_json_schema={"format": "binary"})]
    source: Annotated[str, Meta(description='code of the file\'s language, or "auto"')]
    target: Annotated[str, Meta(description="code of the translation's language")]
    api_key: Key = ""
