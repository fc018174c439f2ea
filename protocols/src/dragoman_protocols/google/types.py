"""What Google's API reads.

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


class LanguagesQuery(Struct):
    """The parameters of a list of languages."""

    target: Annotated[str | None, Meta(description="code of the language that names are in")] = None
