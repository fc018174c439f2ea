"""JSON bodies, read into an API's types, with messages that a caller can act on."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError

T = TypeVar("T")

JSON_TYPE = "application/json"

MAX_VALUES = 4096
"""Members of arrays in a body, together; more where it is so long that texts may look like them."""
BYTES_A_VALUE = 64
"""A body of `MAX_VALUES` times so many bytes or more may have one for each: 16,384 in a mebibyte, decoded in 3 ms."""
ENDS = (b'",', b"},", b"],")
"""Of a member that is no number."""

MAX_CHARS_QUOTED = 40

_AT = re.compile(r"^(.*?)(?: - at `(?:key in )?\$(.*)`)?$", re.S)
_TYPES = {
    "str": "a string",
    "array": "a list",
    "object": "an object",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "null": "null",
}
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "greater than"}


def read_json(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """What a JSON body has.

    Raises:
        MalformedRequestError: It is not UTF-8, not JSON, or has too many values.
        InvalidFieldError: A field is missing, unknown or of the wrong type.
    """
    commas = body.count(b",")
    if commas > MAX_VALUES and commas > (most := max(MAX_VALUES, len(body) // BYTES_A_VALUE)):
        # A quote within a text ends no member; one behind an escaped backslash ends the text.
        dense = body.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, b" \t\r\n")
        if sum(map(dense.count, ENDS)) > most:
            raise MalformedRequestError(f"the body has more than {most} values; send less at once")
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise described(error, decoder.type) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).removeprefix("JSON is malformed: ")
        raise MalformedRequestError(f"the body is not JSON: {reason}") from None


def read_fields(values: Mapping[str, object], shape: type[T]) -> T:
    """What the fields of a form or a query have; others than those of `shape` are ignored.

    Raises:
        InvalidFieldError: A field is missing or of the wrong type.
    """
    try:
        return msgspec.convert(values, shape)
    except msgspec.ValidationError as error:
        raise described(error, shape) from None


def described(error: msgspec.ValidationError, shape: Any) -> CallerError:
    """What msgspec found wrong, in words that name the field; what is not recognised is passed on as it is."""
    found = _AT.match(str(error))
    assert found is not None
    message, path = found[1], (found[2] or "").lstrip(".")
    if match := re.fullmatch(r"Object missing required field `(.*)`", message):
        path = f"{path}.{match[1]}" if path else match[1]
        return InvalidFieldError(f"{path} is required", path)
    if match := re.fullmatch(r"Object contains unknown field `(.*)`", message, re.S):
        name = match[1][:MAX_CHARS_QUOTED]
        return InvalidFieldError(f"{name!r} is no field of this request", name)
    if match := re.fullmatch(r"Expected `([^`]*)`, got `.*`", message):
        if not path:
            return InvalidFieldError(f"the body must be {_root(shape)}")
        return InvalidFieldError(f"{path} must be {_expected(match[1])}", path)
    if match := re.fullmatch(r"Expected `\w+` (<=|>=|<|>) (-?[\d.]+)", message):
        bound = match[2].removesuffix(".0")
        return InvalidFieldError(f"{path} must be {_BOUNDS[match[1]]} {bound}", path)
    if match := re.fullmatch(r"Expected `(\w+)` of length (<=|>=) (\d+)", message):
        return InvalidFieldError(f"{path} {_length(match[1], match[2], match[3])}", path)
    if message.startswith("Invalid enum value") and (members := _members(shape, path)):
        if len(members) == 1:
            return InvalidFieldError(f"{path}: only {members[0]} is supported", path)
        return InvalidFieldError(f"{path} must be one of {', '.join(members)}", path)
    return InvalidFieldError(f"{path}: {message}" if path else message, path)


def _length(kind: str, sign: str, bound: str) -> str:
    if (sign, bound) == (">=", "1"):
        return "must not be empty"
    if (sign, bound) == ("<=", "0"):
        return "are not supported"
    return f"must have {_BOUNDS[sign]} {bound} {'characters' if kind == 'str' else 'members'}"


def _expected(types: str) -> str:
    names = [name for name in types.split(" | ") if name != "null"]
    if names == ["str", "array"] or names == ["array", "str"]:
        return "a string or a list of strings"
    return " or ".join(_TYPES.get(name, name) for name in names)


def _root(shape: Any) -> str:
    if get_origin(shape) is dict:
        return "a JSON object"
    if not (isinstance(shape, type) and issubclass(shape, msgspec.Struct)):
        return "a JSON array"
    required = [field.encode_name for field in msgspec.structs.fields(shape) if field.required]
    return f"a JSON object with {' and '.join(required)}" if required else "a JSON object"


def _members(shape: Any, path: str) -> list[str]:
    """The values of the enumeration at a path."""
    for name in re.findall(r"[^.\[\]]+", path):
        if name.isdigit() or name == "...":
            continue
        structs = [each for each in _leaves(shape) if issubclass(each, msgspec.Struct)]
        hints = [
            get_type_hints(each).get(field.name)
            for each in structs
            for field in msgspec.structs.fields(each)
            if field.encode_name == name
        ]
        if not hints:
            return []
        shape = hints[0]
    values = [member.value for each in _leaves(shape) if issubclass(each, enum.Enum) for member in each]
    return [str(value) for value in (*values, *_literals(shape))]


def _literals(shape: Any) -> list[Any]:
    """The values of the literals that a type is made of."""
    if get_origin(shape) is Literal:
        return list(get_args(shape))
    return [value for each in get_args(shape) for value in _literals(each)]


def _leaves(shape: Any) -> list[type]:
    """The classes that a type is made of."""
    if isinstance(shape, type) and not get_args(shape):
        return [shape]
    return [leaf for each in get_args(shape) for leaf in _leaves(each)]
