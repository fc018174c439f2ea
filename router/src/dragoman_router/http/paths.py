"""Paths that are in no API's table: those of a deployment that a request names, and unknown ones."""

from __future__ import annotations

import posixpath

from dragoman_contract.routing import HELD_GLOSSARIES_PATH
from dragoman_protocols import routes
from dragoman_protocols.api import Endpoint, Kind
from dragoman_protocols.errors import UnknownPathError
from dragoman_router.request import Request

PRIVATE = frozenset({"/livez", "/readyz", "/startupz", "/metrics", "/drained"})
"""Paths of a pod that are for the cluster."""


def any_path(request: Request) -> Endpoint:
    """An endpoint for a path that no API has; it exists only at a deployment that the request names.

    Raises:
        UnknownPathError: It names none, or the path is for the cluster.
    """
    if request.deployment is not None and not _is_private(request.path):
        return Endpoint(routes.api_of(request), Kind.DETECT, request.path, frozenset())
    raise UnknownPathError(f"nothing here at {request.path[:100]!r}")


def _is_private(path: str) -> bool:
    """Whether a path is for the cluster, or might become one where dots are resolved."""
    normal = posixpath.normpath(path)
    if "//" in path or normal != (path.rstrip("/") or "/"):
        return True
    return normal in PRIVATE or f"{normal}/".startswith(HELD_GLOSSARIES_PATH)
