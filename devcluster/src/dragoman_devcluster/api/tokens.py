"""Bearer tokens: the administrator's, and those issued to service accounts."""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import json
from collections.abc import Callable

ADMINISTRATOR = "dragoman-local-admin"


class TokenIssuer:
    """Issues and recognises tokens. `secret` is the administrator's token, which also signs the others."""

    def __init__(self, secret: str, clock: Callable[[], datetime.datetime]) -> None:
        self._secret = secret.encode()
        self._clock = clock

    def issue(self, user: str, expires: datetime.datetime) -> str:
        """A token for a user such as `system:serviceaccount:default:web`, good until `expires`."""
        claims = json.dumps({"sub": user, "exp": int(expires.timestamp())}).encode()
        payload = base64.urlsafe_b64encode(claims).decode().rstrip("=")
        return f"{payload}.{self._signature(payload)}"

    def user_of(self, token: str) -> str | None:
        """Whose token it is; None if it is not one of ours, or too old."""
        if hmac.compare_digest(token.encode(), self._secret):
            return ADMINISTRATOR
        payload, _, signature = token.partition(".")
        if not hmac.compare_digest(signature.encode(), self._signature(payload).encode()):
            return None
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        return str(claims["sub"]) if claims["exp"] > self._clock().timestamp() else None

    def _signature(self, payload: str) -> str:
        digest = hmac.digest(self._secret, payload.encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
