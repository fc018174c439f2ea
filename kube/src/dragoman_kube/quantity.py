"""Kubernetes quantities: `100m`, `1.5Gi`, `2e3`.

Source: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

_FORM = re.compile(r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+|)")
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def parse(text: str | int | float) -> Decimal:
    """The number that a quantity stands for.

    Raises:
        ValueError: It is not a quantity.
    """
    form = _FORM.fullmatch(str(text))
    if form is None:
        raise ValueError(f"{text!r} is not a quantity such as 500m or 1.5Gi")
    number, suffix = Decimal(form["number"]), form["suffix"]
    if suffix in _BINARY:
        return number * Decimal(1024 ** _BINARY[suffix])
    return number.scaleb(_DECIMAL[suffix] if suffix in _DECIMAL else int(suffix[1:]))


def canonical(value: Any) -> Any:
    """The quantity in the form in which the API server stores it; any other value is returned unchanged."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return value
    try:
        number = parse(value)
    except ValueError:
        return value
    if number == 0:
        return "0"
    binary = isinstance(value, str) and value.endswith("i")
    if binary and abs(number) >= 1024 and number == number.to_integral_value():
        for suffix, power in reversed(_BINARY.items()):
            if number % 1024**power == 0:
                return f"{int(number // 1024**power)}{suffix}"
        return str(int(number))
    if isinstance(value, str) and re.search(r"[eE][+-]?\d+$", value):
        return value
    for suffix, exponent in sorted(_DECIMAL.items(), key=lambda item: -item[1]):
        scaled = number.scaleb(-exponent)
        if scaled == scaled.to_integral_value():
            return f"{int(scaled)}{suffix}"
    return value
