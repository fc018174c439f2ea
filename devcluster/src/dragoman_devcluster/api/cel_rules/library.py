"""The functions that Kubernetes adds to CEL, for a CEL package that has only the standard ones.

Quantities are numbers here, which orders and adds them as long as they stay below 2**53.
Source: https://kubernetes.io/docs/reference/using-api/cel/#cel-options-language-features-and-libraries
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

from dragoman_kube.quantity import parse

SIZE = "dragoman_size"
"""What `size` is rewritten to: the package counts a string's bytes, CEL its code points."""


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        return list(text)
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    return text.replace(old, new, limit)


def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise ValueError(f"substring({start}, {end}) of a text of {len(text)}")
    return text[start:end]


def _index_of(value: Any, wanted: Any, start: int = 0) -> int:
    if isinstance(value, str):
        return value.find(wanted, start)
    return next((index for index, item in enumerate(value) if item == wanted), -1)


def _last_index_of(value: Any, wanted: Any) -> int:
    if isinstance(value, str):
        return value.rfind(wanted)
    return max((index for index, item in enumerate(value) if item == wanted), default=-1)


def _is_sorted(items: Sequence[Any]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(items))


def _find(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in re.finditer(pattern, text)]
    return found if limit < 0 else found[:limit]


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return text.startswith("/") or bool(parts.scheme and (parts.netloc or parts.path.startswith("/")))


def _url_part(read: Callable[[SplitResult], str | None]) -> Callable[[str], str]:
    return lambda text: read(urlsplit(text)) or ""


def _is_quantity(text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    SIZE: len,
    "charAt": lambda text, index: text[index : index + 1],
    "indexOf": _index_of,
    "lastIndexOf": _last_index_of,
    "join": lambda items, separator="": separator.join(items),
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
    "replace": _replace,
    "split": _split,
    "substring": _substring,
    "trim": str.strip,
    "reverse": lambda value: value[::-1],
    "find": _find,
    "findAll": _find_all,
    "isSorted": _is_sorted,
    "sum": sum,
    "isURL": _is_url,
    "url": str,
    "getScheme": _url_part(lambda url: url.scheme),
    "getHost": _url_part(lambda url: url.netloc),
    "getHostname": _url_part(lambda url: url.hostname),
    "getPort": _url_part(lambda url: str(url.port or "")),
    "getEscapedPath": _url_part(lambda url: url.path),
    "isQuantity": _is_quantity,
    "quantity": lambda text: float(parse(text)),
    "isGreaterThan": lambda one, other: one > other,
    "isLessThan": lambda one, other: one < other,
    "compareTo": lambda one, other: _sign(one - other),
    "asInteger": int,
    "asApproximateFloat": float,
    "isInteger": lambda value: value == int(value),
    "sign": _sign,
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
}

STANDARD = frozenset({
    "size", "contains", "startsWith", "endsWith", "matches", "has", "all", "exists", "exists_one", "map",
    "filter", "string", "int", "uint", "double", "bool", "bytes", "dyn", "type", "duration", "timestamp",
    "getFullYear", "getMonth", "getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getHours",
    "getMinutes", "getSeconds", "getMilliseconds", "max", "min", "optional", "hasValue", "value", "orValue",
    "or", "none", "of", "optional.none", "optional.of", "optional.ofNonZeroValue",
})  # fmt: skip
"""Functions of the CEL package itself."""
