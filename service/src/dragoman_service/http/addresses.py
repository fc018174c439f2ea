"""The address that a client used, for URLs in answers to it."""

from __future__ import annotations

import re

from starlette.requests import Request

_HOST = re.compile(r"[A-Za-z0-9_.-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")
_PREFIX = re.compile(r"(/[A-Za-z0-9_.~-]{1,100}){1,10}/?")


def base_url(request: Request) -> str:
    """Scheme, host and prefix by which the client came, with a slash at the end.

    As `X-Forwarded-Proto`, `-Host` and `-Prefix` say, which routers and ingresses set; what they leave open is this
    request's own. Who asks a pod could write them, and gets an address of its own choice back, as with `Host`.
    """
    said = {name: _first(request, f"x-forwarded-{name}") for name in ("proto", "host", "prefix")}
    own = request.base_url
    scheme = said["proto"].lower() if said["proto"].lower() in ("http", "https") else own.scheme
    host = said["host"] if _HOST.fullmatch(said["host"]) else own.netloc
    prefix = said["prefix"] if _PREFIX.fullmatch(said["prefix"]) else own.path
    return f"{scheme}://{host}{prefix.rstrip('/')}/"


def _first(request: Request, name: str) -> str:
    """What the proxy nearest to the client wrote."""
    return request.headers.get(name, "").partition(",")[0].strip()
