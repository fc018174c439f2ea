"""What several commands have in common: numbers that argparse reads, and tables that they print."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence


def seconds(text: str) -> float:
    """A time for argparse, above 0.

    Raises:
        ArgumentTypeError: It is no number, not above 0, or not finite.
    """
    value = _number(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def seconds_or_none(text: str) -> float:
    """A time for argparse, 0 or more.

    Raises:
        ArgumentTypeError: It is no number, or less than 0.
    """
    value = _number(text)
    if not value >= 0:  # NaN would wait for ever.
        raise argparse.ArgumentTypeError(f"{text} is not 0 or more")
    return value


def _number(text: str) -> float:
    # argparse would name the Python function that raises a ValueError.
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None


def whole(text: str) -> int:
    """A count for argparse, 1 or more.

    Raises:
        ArgumentTypeError: It is no whole number, or less than 1.
    """
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table whose columns are aligned."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    written = ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]
    written.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(written)
