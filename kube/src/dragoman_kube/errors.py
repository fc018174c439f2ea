"""Errors of requests to the Kubernetes API.

::

    ClusterError
    ├── ConfigurationError   no address or credentials; nothing was sent
    ├── NotFoundError        404
    ├── ConflictError        409
    ├── GoneError            410: the resourceVersion has expired
    ├── RefusedError         any other 4xx: forbidden, invalid, over quota
    ├── UnavailableError     no response, 408, 429 or 5xx
    └── WriteForbiddenError  the client is fenced; nothing was sent
"""

from __future__ import annotations

import json


class ClusterError(Exception):
    """A request to the API server failed.

    Args:
        attempted: The request, such as ``apply Deployment default/demo``.
        reason: The cause, from the server.
        status: HTTP status of the response; 0 without one.
        code: The ``reason`` of the response's Status object, such as ``AlreadyExists``; may be empty.
    """

    def __init__(self, attempted: str, reason: str, status: int = 0, code: str = "") -> None:
        super().__init__(f"{attempted}: {reason}")
        self.attempted = attempted
        self.reason = reason
        self.status = status
        self.code = code


class ConfigurationError(ClusterError):
    """There is no cluster to connect to, or its credentials cannot be read."""


class NotFoundError(ClusterError):
    """The object or its kind does not exist."""


class ConflictError(ClusterError):
    """The object exists already, or has changed since it was read."""


class GoneError(ClusterError):
    """The resourceVersion or page token is too old: list again."""


class RefusedError(ClusterError):
    """The server rejects the request: forbidden, invalid, over quota."""


class UnavailableError(ClusterError):
    """The server cannot be reached, is overloaded or fails."""


class WriteForbiddenError(ClusterError):
    """The client may not write, because this process does not hold its Lease."""


MAX_REASON_CHARACTERS = 1000

_TYPES: dict[int, type[ClusterError]] = {
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    408: UnavailableError,
    429: UnavailableError,
}


def error_of(attempted: str, status: int, content: bytes | str) -> ClusterError:
    """The error for a response.

    Source: https://kubernetes.io/docs/reference/using-api/api-concepts/
    """
    text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
    code = ""
    try:
        parsed = json.loads(text)
        text, code = str(parsed.get("message") or text), str(parsed.get("reason") or "")
    except (ValueError, AttributeError):
        pass
    kind = _TYPES.get(status, UnavailableError if status >= 500 else RefusedError)
    return kind(attempted, f"{text[:MAX_REASON_CHARACTERS]} ({status})", status, code)
