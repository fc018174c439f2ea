"""What can go wrong before anything is measured."""

from __future__ import annotations

from dragoman_tune.errors import MeasureError


class BenchError(MeasureError):
    """The root of this package."""


class NoGPUError(BenchError):
    """`--device cuda` without a GPU."""


class TooLittleMemoryError(BenchError):
    """The GPU has less free memory than an arm needs."""


class VocabularyError(BenchError):
    """The tokenizer knows too few of the words that lengths are made of."""


class ClusterSetupError(BenchError):
    """A cluster to measure on could not be made; the message has the reason."""
