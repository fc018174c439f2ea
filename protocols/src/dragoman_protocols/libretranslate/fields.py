"""A request's fields, however it carries them: JSON, a form of either kind, or the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta, Struct

from dragoman_protocols.bodies import read_json
from dragoman_protocols.errors import InvalidFieldError
from dragoman_protocols.forms import FieldValues
from dragoman_protocols.languages import Codes
from dragoman_protocols.messages import Request
from dragoman_protocols.offer import Offer
from dragoman_protocols.served import Need

CODES = Codes(
    {"zh": "zh-Hans", "zt": "zh-Hant", "pb": "pt-BR"},
    {"zh": "zh-Hans", "fil": "tl"},
)
"""Codes of its models, which are taken and but for `tl` not given.

Source: `aliases` in libretranslate/language.py of LibreTranslate 1.9.6
"""


class _Json(Struct):
    """The fields of a JSON body that are read."""

    q: Any = None
    source: Any = None
    target: Any = None
    format: Any = None
    alternatives: Any = None


_DECODER = msgspec.json.Decoder(_Json)


class Fields(NamedTuple):
    """The fields of a request.

    Args:
        values: By name: any value of JSON; of a form or a query a string, or a list of strings where it is repeated.
    """

    values: Mapping[str, Any]
    is_json: bool = False

    def text(self, name: str) -> str:
        """A field of one string, empty where it is missing.

        Raises:
            InvalidFieldError: It is something else.
        """
        value = self.values.get(name)
        if isinstance(value, list) and not self.is_json:
            value = value[0]
        if not isinstance(value, str | None):
            raise InvalidFieldError(f"Invalid request: {name} parameter is not a string")
        return value or ""

    def required(self, name: str) -> str:
        """A field of one string that has to be there.

        Raises:
            InvalidFieldError: It is not, or is something else.
        """
        value = self.text(name)
        if not value:
            raise missing(name)
        return value

    def texts(self) -> tuple[str, ...]:
        """The texts of `q`, at least one.

        Raises:
            InvalidFieldError: There are none, or they are something else.
        """
        value = self.values.get("q")
        if not value:
            raise missing("q")
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise InvalidFieldError("Invalid request: q parameter is neither a string nor a list of strings")
        return tuple(texts)

    def need(self, offer: Offer, texts: tuple[str, ...] = ()) -> Need:
        """The pair.

        Raises:
            InvalidFieldError: One of its languages is missing.
            UnknownLanguageError: One is none.
        """
        source, target = self.required("source"), self.required("target")
        return Need(
            CODES.source(source, offer.listed_sources),
            (CODES.tag(target, offer.listed_targets),),
            texts,
            keeps=True,
        )


def missing(name: str) -> InvalidFieldError:
    """The error for a field that has to be there."""
    return InvalidFieldError(f"Invalid request: missing {name} parameter")


def read_fields(request: Request) -> Fields:
    """The fields of a request; the query wins over a form, and JSON over the query.

    Raises:
        CallerError: They cannot be read.
    """
    if request.upload is not None:
        return _of_forms(request.upload.fields, request)
    if request.body and not (request.is_form or request.is_multipart):
        return Fields(msgspec.structs.asdict(read_json(request.body, _DECODER)), is_json=True)
    return _of_forms(request.form_fields(), request)


def _of_forms(form: FieldValues, request: Request) -> Fields:
    # Line ends as texts have them, not as forms do.
    values = {
        name: [value.replace("\r\n", "\n") for value in found]
        for name, found in {**form, **request.query_fields()}.items()
    }
    return Fields({name: found[0] if len(found) == 1 else found for name, found in values.items()})


# For the OpenAPI document: requests are read leniently.
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
    memory: Annotated[
        str | None,
        Meta(description="a translation memory in TMX, as a file", extra_json_schema={"format": "binary"}),
    ] = None
    api_key: Key = ""
