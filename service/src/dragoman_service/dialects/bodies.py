"""JSON bodies, read into a dialect's own shape, with complaints that a caller can act on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, FailFast, TypeAdapter, ValidationError

from dragoman_protocols.errors import CallerError, InvalidFieldError, MalformedRequestError

MOST_COMPLAINTS = 5
"""A list of wrong items must not make an answer as long as the request."""

MOST_PROBLEMS = 500
"""More are counted and not read, which would take a microsecond or two each."""

MOST_CHARS_QUOTED = 40


class FirstProblem(FailFast):
    """Ends the validation of a list with its first wrong item: each is an object, and there may be very many."""

    __hash__ = object.__hash__
    """Members of unions have to have one."""


FIRST_PROBLEM = FirstProblem()

Shape = TypeVar("Shape")

ADAPTERS: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Validators by shape; making one takes longer than using it."""


def decoded(body: bytes) -> str:
    """A body's text.

    Raises:
        MalformedRequestError: It is not UTF-8.
    """
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise MalformedRequestError(f"the body is not UTF-8 (byte {error.start})") from None


def read_json(body: bytes, shape: type[Shape]) -> Shape:
    """What a JSON body says.

    Args:
        body: As it came.
        shape: What it must look like: a pydantic model, or a list of them.

    Raises:
        MalformedRequestError: It is not UTF-8, or not JSON.
        InvalidFieldError: It is JSON, but not of this shape; the fields are named.
    """
    try:
        read: Shape = ADAPTERS(shape).validate_json(decoded(body))
    except ValidationError as error:
        raise refusal(error, shape) from None
    return read


def refusal(error: ValidationError, shape: type[Any]) -> CallerError:
    """What pydantic found, in few words of a caller's.

    Args:
        error: As pydantic raised it.
        shape: What was validated; an object's required fields are named where something else was sent.
    """
    if error.error_count() > MOST_PROBLEMS:
        return InvalidFieldError(
            f"{error.error_count()} fields are unknown or wrong; send at most {MOST_PROBLEMS}"
        )
    problems = error.errors(include_url=False, include_input=False)
    if problems[0]["type"] == "json_invalid":
        return MalformedRequestError(f"the body is not JSON: {problems[0]['ctx']['error']}")
    if not problems[0]["loc"]:
        if problems[0]["type"] == "list_type":
            return InvalidFieldError("the body must be a JSON array")
        if isinstance(shape, type) and issubclass(shape, BaseModel) and problems[0]["type"] == "model_type":
            return InvalidFieldError(f"the body must be a JSON object with {_required(shape)}")
        return InvalidFieldError(problems[0]["msg"].removeprefix("Value error, "))
    complaints = dict.fromkeys(_complaint(found["type"], found["msg"], found["loc"]) for found in problems)
    return InvalidFieldError("; ".join([said for said in complaints if said][:MOST_COMPLAINTS]))


def _required(shape: type[BaseModel]) -> str:
    *names, last = [name for name, field in shape.model_fields.items() if field.is_required()] or ["fields"]
    return f"{', '.join(names)} and {last}" if names else last


def _complaint(kind: str, message: str, place: tuple[int | str, ...]) -> str:
    """One problem in words, or nothing where another problem says it better."""
    field = _path(place)
    # A union reports its members as elements of the path: `text.str`, `text.list[str]`, `text.list[str].0`.
    match kind:
        case "missing":
            return f"{field} is required"
        case "extra_forbidden":
            return f"{str(place[-1])[:MOST_CHARS_QUOTED]!r} is no field of this request"
        case "string_type" if any(str(part) == "str" for part in place):
            return f"{field} must be a string or a list of strings"
        case "string_type":
            return f"{field} must be a string"
        case "list_type" | "tuple_type" if any("[" in str(part) for part in place):
            return ""
    return f"{field}: {message.removeprefix('Value error, ')}"


def _path(place: tuple[int | str, ...]) -> str:
    """`terms[2].source`, without the names that pydantic gives a union's members."""
    path = ""
    for part in place:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part not in ("str", "float", "int", "bool") and not any(mark in part for mark in "[("):
            path += f".{part[:MOST_CHARS_QUOTED]}" if path else part[:MOST_CHARS_QUOTED]
    return path
