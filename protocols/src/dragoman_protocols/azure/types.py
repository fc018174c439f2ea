"""What Azure's API reads, in versions 3.0 and 2026-06-06.

Sources: https://learn.microsoft.com/azure/ai-services/translator/text-translation/reference/v3/translate and
the client azure-ai-translation-text, 1.0.1 and 2.0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType, field

MAX_ITEMS = 1000
"""Texts in one request."""


class Version(StrEnum):
    """A version of the API."""

    V3 = "3.0"
    V2026 = "2026-06-06"


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


class ProfanityAction(StrEnum):
    """What is done about profanities."""

    NO_ACTION = "NoAction"


VersionParameter = Annotated[Version, Meta(description="marks Azure's API")]


class VersionQuery(Struct):
    """The parameters of a detection."""

    api_version: VersionParameter = field(name="api-version")


class LanguagesQuery(Struct):
    """The parameters of a list of languages."""

    api_version: VersionParameter = field(name="api-version")
    scope: Annotated[
        str, Meta(description="translation, transliteration, dictionary (3.0), models (2026-06-06)")
    ] = ""


class TranslateQuery(Struct):
    """The parameters of a translation; all but the version are for 3.0."""

    api_version: VersionParameter = field(name="api-version")
    to: Annotated[list[str], Meta(description="languages to translate into (3.0)")] = []
    from_: Annotated[str, Meta(description="the texts' language (3.0); default: detected")] = field(
        name="from", default=""
    )
    textType: Annotated[TextType, Meta(description="(3.0)")] = TextType.PLAIN


class Item(Struct):
    """One text of version 3.0, in either casing."""

    Text: str | UnsetType = UNSET
    text: str | UnsetType = UNSET


Items = Annotated[list[Item], Meta(max_length=MAX_ITEMS)]
"""The body of version 3.0; its length is checked with Azure's own error."""


class TargetLanguage(Struct):
    """What a router reads of a `Target`."""

    language: str
    script: str | None = None


class Target(TargetLanguage, forbid_unknown_fields=True):
    """One translation of a text of version 2026-06-06."""

    tone: Tone = Tone.NEUTRAL
    gender: Gender = Gender.NEUTRAL
    profanityAction: ProfanityAction = ProfanityAction.NO_ACTION
    profanityMarker: str | None = None
    deploymentName: Annotated[str | None, Meta(description="ignored: the pod has one model")] = None
    allowFallback: Annotated[bool, Meta(description="ignored: the pod has one model")] = True


class InputLanguages(Struct):
    """What a router reads of an `Input`."""

    text: str
    targets: Annotated[Sequence[TargetLanguage], Meta(min_length=1)]
    language: str | None = None
    script: str | None = None


class Input(InputLanguages, forbid_unknown_fields=True):
    """One text of version 2026-06-06."""

    targets: Annotated[list[Target], Meta(min_length=1)]
    textType: TextType = TextType.PLAIN


class InputsLanguages(Struct):
    """What a router reads of the body of version 2026-06-06."""

    inputs: Annotated[Sequence[InputLanguages], Meta(min_length=1)]


class Inputs(InputsLanguages):
    """The body of version 2026-06-06."""

    inputs: Annotated[list[Input], Meta(min_length=1)]


class DocumentQuery(Struct):
    """The parameters of the translation of a document; `category` and `allowFallback` are ignored."""

    targetLanguage: Annotated[str, Meta(min_length=1, description="language to translate into")]
    api_version: Annotated[str, Meta(description="marks Azure's API; any")] = field(
        name="api-version", default=""
    )
    sourceLanguage: Annotated[str, Meta(description="the document's language; default: detected")] = ""


class DocumentForm(Struct):
    """The form of the translation of a document."""

    document: Annotated[
        str, Meta(description="the document, with its name", extra_json_schema={"format": "binary"})
    ]
    glossary: Annotated[
        list[Annotated[str, Meta(extra_json_schema={"format": "binary"})]],
        Meta(description="terms in CSV or TSV: source, target"),
    ] = []
