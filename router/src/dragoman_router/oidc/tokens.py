"""Callers by their tokens: verified tokens are kept until they expire, and each caller has an account."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping

from cachetools import LRUCache

from dragoman_protocols.errors import IssuerUnavailableError, TokenRefusedError
from dragoman_router.access.accounts import Account, AccountLimits
from dragoman_router.access.gate import Identity
from dragoman_router.oidc.claims import Caller, Expected, UnknownSigningKeyError, verified
from dragoman_router.oidc.issuer import MIN_INTERVAL_S, Issuer
from dragoman_router.settings import Settings

MAX_TOKENS = 10_000
"""Verified tokens that are kept, about 3 MB."""
MAX_CALLERS = 10_000
CACHED_S = 300
"""A token is verified again after this time, so that a signing key that was withdrawn no longer counts."""
PREFIX = "oidc/"
"""Before the name of a caller in usage and metrics; names of keys are names of files and have no slash."""
OTHERS = "*"
"""In the limits: of callers whom no other entry is for."""


class OidcVerifier:
    """The tokens of one issuer; see `access.gate.TokenVerifier`.

    Args:
        issuer: Has the signing keys.
        expected: What a token has to have.
        limits: By value of the limits claim: of a caller the first that is here, else `OTHERS`.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        issuer: Issuer,
        expected: Expected,
        limits: Mapping[str, AccountLimits],
        clock: Callable[[], float],
        seconds: Callable[[], float] = time.time,
    ) -> None:
        self._issuer, self._expected, self._limits = issuer, expected, limits
        self._clock, self._seconds = clock, seconds
        self._verified: LRUCache[bytes, tuple[Identity, float]] = LRUCache(MAX_TOKENS)
        self._accounts: LRUCache[str, Account] = LRUCache(MAX_CALLERS)

    @property
    def issuer(self) -> str:
        """Where tokens come from."""
        return self._expected.issuer

    def known(self, token: bytes) -> Identity | None:
        """Whom a token is of that was verified and has not expired."""
        found = self._verified.get(_digest(token))
        return found[0] if found is not None and self._seconds() < found[1] else None

    async def verify(self, token: bytes) -> Identity:
        """Whom a token is of; the issuer's keys are fetched again where the token's is not among them.

        Raises:
            TokenRefusedError: It is not valid here.
            IssuerUnavailableError: The issuer's keys are not known yet.
        """
        caller = self._verified_by_known_keys(token)
        if caller is None:
            await self._issuer.refresh()
            caller = self._verified_by_known_keys(token)
        if caller is None:
            if not self._issuer.keys:
                raise IssuerUnavailableError(
                    "the keys of the tokens' issuer are not known yet; retry later", MIN_INTERVAL_S
                )
            raise TokenRefusedError(f"the token is signed with a key that {self.issuer} does not list")
        limits = self._limits_of(caller)
        identity = Identity(self._account(caller, limits), limits.deployments, limits.fleet)
        until_s = min(caller.expires_s, self._seconds() + CACHED_S)
        self._verified[_digest(token)] = identity, until_s
        return identity

    def _verified_by_known_keys(self, token: bytes) -> Caller | None:
        try:
            return verified(token, self._issuer.keys, self._expected)
        except UnknownSigningKeyError:
            return None

    def _limits_of(self, caller: Caller) -> AccountLimits:
        others = self._limits.get(OTHERS, AccountLimits())
        return next((self._limits[group] for group in caller.groups if group in self._limits), others)

    def _account(self, caller: Caller, limits: AccountLimits) -> Account:
        name = PREFIX + caller.name
        account = self._accounts.get(name)
        if account is None:
            account = self._accounts[name] = Account(name, limits, self._clock())
        elif account.limits != limits:
            account.change(limits, self._clock())
        return account


def _digest(token: bytes) -> bytes:
    return hashlib.blake2b(token, digest_size=32).digest()


def open_tokens(settings: Settings) -> tuple[Issuer, OidcVerifier]:
    """The issuer, which has to be watched, and its tokens; the settings name one."""
    assert settings.oidc_issuer is not None
    clock = asyncio.get_running_loop().time
    issuer = Issuer(settings.oidc_issuer, clock)
    expected = Expected(
        settings.oidc_issuer, settings.oidc_audience, settings.oidc_name_claim, settings.oidc_limits_claim
    )
    limits = {group: AccountLimits(**each.model_dump()) for group, each in settings.oidc_limits.items()}
    return issuer, OidcVerifier(issuer, expected, limits, clock)
