"""A client's request on its way through the router, and what the audit log has of it."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman_protocols.messages import Request
from dragoman_protocols.served import Need


@dataclass(slots=True)
class AuditEntry:
    """What the audit log has of a request.

    Args:
        api: In whose format it was answered.
        characters: That are charged.
        status: Of the answer; None where the client disconnected before it.
        error: Code of the router's own error.
    """

    api: str = ""
    deployment: str | None = None
    needs: tuple[Need, ...] = ()
    characters: int = 0
    status: int | None = None
    error: str | None = None


@dataclass(slots=True)
class RoutedRequest(Request):
    """One request with its caller and the deployments that may answer it.

    Args:
        client: Address of the caller; of one behind a trusted proxy what that proxy says.
        peer: Address of the other end of the connection: the caller's or a proxy's.
        raw_path: The path as it came, without the prefix that names a deployment.
        deployment: `NAMESPACE/NAME` where the request names one.
        key_name: Name of the API key, or of the token's caller, once it was found.
        account: Of the token's caller; None without a token.
        scope: Deployments that its key or token may use; None: all.
        fleet: Whether its key or token may see the fleet view.
        candidates: Keys of the deployments that may answer it, once they are determined.
        audit: For the audit log; None: it is off.
    """

    client: str = ""
    peer: str = ""
    raw_path: bytes = b""
    deployment: str | None = None
    key_name: str | None = None
    account: object = None
    scope: tuple[str, ...] | None = None
    fleet: bool = False
    candidates: tuple[str, ...] = ()
    audit: AuditEntry | None = None
