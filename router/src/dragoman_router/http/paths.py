"""Paths that are in no API's table: those of a deployment that a request names, and unknown ones."""

from __future__ import annotations

import posixpath
import re

from dragoman_contract.routing import HELD_GLOSSARIES_PATH
from dragoman_protocols import routes
from dragoman_protocols.api import Endpoint, Kind
from dragoman_protocols.errors import UnknownPathError
from dragoman_router.request import Request

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_DOCUMENTS = (
    re.compile(r"/v2/document/([0-9A-Fa-f]{32})(?:/result)?"),
    re.compile(rf"/download_file/({_UUID})\.[\w.\-]{{1,200}}", re.A),
)
"""Paths of documents that pods have."""

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


def document_of(request: Request) -> str | None:
    """The id of the document that a request is for; None where it has not the shape of one."""
    for pattern in _DOCUMENTS:
        found = pattern.fullmatch(request.path)
        if found is not None:
            return found[1]
    return None


def _is_private(path: str) -> bool:
    """Whether a path is for the cluster, or might become one where dots are resolved."""
    normal = posixpath.normpath(path)
    if "//" in path or normal != (path.rstrip("/") or "/"):
        return True
    return normal in PRIVATE or f"{normal}/".startswith(HELD_GLOSSARIES_PATH)
