"""Errors of the operator.

::

    OperatorError
    ├── SpecError            invalid spec
    ├── MetricsError         metrics unavailable or malformed
    └── ClusterError         request to the API server failed
        ├── NotFoundError
        ├── ConflictError    modified concurrently, reconcile again
        ├── RefusedError     forbidden or invalid
        ├── UnavailableError not reachable, overloaded or failing
        └── NotLeaderError   the Lease is not held, writes are not allowed
"""

from __future__ import annotations


class OperatorError(Exception):
    """Base of the operator's errors; the message has the cause and the action to take."""


class SpecError(OperatorError):
    """The spec is invalid."""


class MetricsError(OperatorError):
    """Metrics are unavailable or malformed."""


class ClusterError(OperatorError):
    """A request to the API server failed.

    Args:
        attempted: The operation, such as ``apply Deployment default/demo``.
        reason: The server's message.
    """

    def __init__(self, attempted: str, reason: str) -> None:
        super().__init__(f"{attempted}: {reason}")
        self.attempted = attempted
        self.reason = reason


class NotFoundError(ClusterError):
    """The object, or its kind, does not exist."""


class ConflictError(ClusterError):
    """The object was changed or created concurrently."""


class RefusedError(ClusterError):
    """The server rejected the request: forbidden, invalid, over quota."""


class UnavailableError(ClusterError):
    """The server cannot be reached, or failed."""


class NotLeaderError(ClusterError):
    """The Lease is not held, so nothing may be written."""
