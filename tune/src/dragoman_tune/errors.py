"""What can go wrong while something is measured."""

from __future__ import annotations


class MeasureError(Exception):
    """The root: a sentence for the command line."""


class RequestsFileError(MeasureError):
    """A file of requests cannot be used; the message names the line."""


class MetricsError(MeasureError):
    """A running deployment's metrics lack what is needed."""


class ServerError(MeasureError):
    """A server under test did not start, or ended while it was measured."""


class StateError(MeasureError):
    """The state of an earlier run does not fit this one."""
