"""What can go wrong in the local cluster: one tree, each error naming the cause and what to do."""

from __future__ import annotations


class LocalClusterError(Exception):
    """Anything the local cluster cannot do; the message says why and what to change."""


class ApiError(LocalClusterError):
    """The Kubernetes API refused a request.

    Args:
        status: HTTP status code.
        reason: The machine-readable reason of the API's Status object, such as ``AlreadyExists``.
        message: Its sentence for people.
    """

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class NotFoundError(ApiError):
    """The object, or its kind, does not exist."""


class ConflictError(ApiError):
    """The object exists already, or has changed since it was read."""


class GoneError(ApiError):
    """The resource version to watch from is too old: list again."""


class ApiUnreachableError(LocalClusterError):
    """No answer from the Kubernetes API."""


class PodRefusedError(LocalClusterError):
    """This node cannot run the pod as written; the message is shown in the container's state."""


class MissingReferenceError(LocalClusterError):
    """Something a volume or a variable refers to does not exist yet."""


class StartFailedError(LocalClusterError):
    """The cluster, or a part of it, did not start."""


class AlreadyRunningError(LocalClusterError):
    """Another supervisor holds the state directory."""
