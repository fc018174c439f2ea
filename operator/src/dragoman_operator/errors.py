"""What can go wrong in the operator.

::

    OperatorError
    ├── SpecError            the object says something that cannot be done
    ├── MetricsError         a pod or a Prometheus does not say what the autoscaler asks
    └── ClusterError         the API server did not do what was asked
        ├── NotFoundError
        ├── ConflictError    someone was faster; look again
        ├── RefusedError     not allowed, or not valid
        ├── UnavailableError not reachable, overloaded or failing
        └── NotLeaderError   we do not hold the Lease (any more) and must not write
"""

from __future__ import annotations


class OperatorError(Exception):
    """Root of the operator's errors; the message names the cause and what to do."""


class SpecError(OperatorError):
    """A spec that this operator cannot follow."""


class MetricsError(OperatorError):
    """Metrics cannot be had, or are not what they should be."""


class ClusterError(OperatorError):
    """A request to the API server failed.

    Args:
        attempted: What was tried, such as ``apply Deployment default/demo``.
        reason: Why it failed, in the server's words.
    """

    def __init__(self, attempted: str, reason: str) -> None:
        super().__init__(f"{attempted}: {reason}")
        self.attempted = attempted
        self.reason = reason


class NotFoundError(ClusterError):
    """The object, or its kind, is not there."""


class ConflictError(ClusterError):
    """The object changed, or exists, since it was looked at."""


class RefusedError(ClusterError):
    """The server understood and said no: forbidden, invalid, over quota."""


class UnavailableError(ClusterError):
    """The server cannot be reached, or fails."""


class NotLeaderError(ClusterError):
    """The Lease is not ours, so nothing may be written."""
