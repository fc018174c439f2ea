"""Endless requests from a sample of real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from dragoman_tune.request import Request


def repeated(requests: Sequence[Request], seed: int) -> Iterator[Request]:
    """Real requests over and over, each time in another order.

    Args:
        requests: At least one.
        seed: The same order for the same seed.
    """
    draw = Random(seed)
    while True:
        yield from draw.sample(requests, len(requests))
