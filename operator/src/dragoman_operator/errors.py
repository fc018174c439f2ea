"""Errors of the operator.

::

    OperatorError
    ├── SpecError            invalid spec
    └── MetricsError         metrics unavailable or malformed

Errors of the Kubernetes API are those of `dragoman_kube.errors`.
"""

from __future__ import annotations


class OperatorError(Exception):
    """Base of the operator's errors; the message has the cause and the action to take."""


class SpecError(OperatorError):
    """The spec is invalid."""


class MetricsError(OperatorError):
    """Metrics are unavailable or malformed."""
