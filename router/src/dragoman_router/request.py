"""A client's request."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_protocols import api


@dataclass(slots=True)
class Request(api.Request):
    """One request, its body read.

    Args:
        client: Address of the caller.
        raw_path: The path as it came, without the prefix that names a deployment.
        deployment: `NAMESPACE/NAME` where the request names one.
        key_name: Name of the API key, or of the token's caller, once it was found.
        account: Of the token's caller; None without a token.
        candidates: Keys of the deployments that may answer it, once they are determined.
        reserved_bytes: Memory that its body takes.
    """

    client: str = ""
    raw_path: bytes = b""
    deployment: str | None = None
    key_name: str | None = None
    account: object = None
    candidates: tuple[str, ...] = ()
    reserved_bytes: int = 0
