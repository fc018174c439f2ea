"""Endless requests from a sample of real ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

from dragoman_tune.request import Request


def repeated(requests: Sequence[Request], seed: int) -> Iterator[Request]:
    """Real requests over and over, each time in another order."""
    draw = Random(seed)
    while True:
        yield from draw.sample(requests, len(requests))
