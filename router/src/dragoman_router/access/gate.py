"""Authentication by API key or token, and rate limits; off unless configured."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from dragoman_protocols.endpoints import Api, Endpoint
from dragoman_protocols.errors import KeyMissingError, KeyRefusedError, RequestError, TokenRefusedError
from dragoman_protocols.keys import bearer_of, key_in_head, looks_like_token
from dragoman_protocols.routes import may_have_key_in_body
from dragoman_router.access.accounts import NO_CHARGE, Account, AccountLimits, Charge
from dragoman_router.access.addresses import MAX_ADDRESSES, client_of
from dragoman_router.access.failures import AuthFailures
from dragoman_router.access.keys import KEY_UNKNOWN, KeyRing
from dragoman_router.access.usage import AccountUsage
from dragoman_router.request import RoutedRequest

ADDRESSES = "address"
"""Before a slash in the name of an address; names of keys are names of files and have no slash."""


class Identity(NamedTuple):
    """Whom a token is of.

    Args:
        account: Of its caller, for all tokens of this caller.
        deployments: That this token may use; None: all.
        fleet: Whether it may see the fleet view.
    """

    account: Account
    deployments: tuple[str, ...] | None
    fleet: bool = False


class TokenVerifier(Protocol):
    """Bearer tokens of an issuer."""

    @property
    def issuer(self) -> str:
        """Where tokens come from."""
        ...

    def known(self, token: bytes) -> Identity | None:
        """Whom a token is of that was verified before and has not expired."""
        ...

    async def verify(self, token: bytes) -> Identity:
        """Whom a token is of.

        Raises:
            TokenRefusedError: It is not valid here.
            IssuerUnavailableError: It cannot be verified now.
        """
        ...


class Gate:
    """Keys, tokens and rates.

    Args:
        ring: The keys; None: keys are not accepted.
        tokens: TokenVerifier; None: they are not accepted. Without keys and tokens neither is required.
        anonymous_requests_per_s: Rate of one client's address if neither is required; None is without limit.
        failures: Limits failed attempts; None: they are not limited.
        public_lists: Whether endpoints with `is_public` need no key.
    """

    def __init__(
        self,
        ring: KeyRing | None,
        tokens: TokenVerifier | None,
        anonymous_requests_per_s: float | None,
        usage: AccountUsage,
        clock: Callable[[], float],
        failures: AuthFailures | None = None,
        *,
        public_lists: bool = True,
    ) -> None:
        self._failures = failures
        self._ring, self._tokens = ring, tokens
        self._anonymous = AccountLimits(requests_per_s=anonymous_requests_per_s)
        self._clients: LRUCache[str, Account] = LRUCache(MAX_ADDRESSES)
        self._usage, self._clock = usage, clock
        self._public_lists = public_lists
        self.requires_keys = ring is not None or tokens is not None
        """Whether requests need a key or a token."""

    def missing(self, request: RoutedRequest, api: Api) -> KeyMissingError:
        """The error of a request without a key or a token, in which its API has the way to send it."""
        if self._tokens is None:
            needed = f"an API key is required; send it {api.key_place}"
        else:
            needed = self._token_needed(self._tokens)
            needed += "" if self._ring is None else f", or an API key {api.key_place}"
        if request.header(b"authorization") is not None:
            needed += "; the header Authorization has neither `Bearer KEY` nor `DeepL-Auth-Key KEY`"
        return KeyMissingError(needed)

    @staticmethod
    def _token_needed(tokens: TokenVerifier) -> str:
        return f"a token of {tokens.issuer} is required in the header `Authorization: Bearer TOKEN`"

    async def authenticate(self, request: RoutedRequest, endpoint: Endpoint) -> bool:
        """Check the key or the token in the head of a request.

        Returns:
            Whether the body has to have a key.

        Raises:
            KeyMissingError: There is none, and the body cannot have one.
            KeyRefusedError: A key was sent, and it is not known.
            TooManyAuthFailuresError: A key was sent; see `AuthFailures.check`.
            TokenRefusedError: The token is not valid here, or came in another place than its own; or a key was sent
                where keys are not accepted.
            IssuerUnavailableError: The token cannot be verified now.
        """
        if not self.requires_keys:
            return False
        has_token = self._tokens is not None and await self._found_token(self._tokens, request)
        if not has_token and (key := key_in_head(request)):
            self.check(request, endpoint.api, key)
        is_open = not endpoint.needs_key or (endpoint.is_public and self._public_lists)
        if request.key_name is not None or is_open:
            return False
        if self._ring is None or not may_have_key_in_body(endpoint):
            raise self.missing(request, endpoint.api)
        return True

    async def _found_token(self, tokens: TokenVerifier, request: RoutedRequest) -> bool:
        token = bearer_of(request)
        if not token:
            return False
        found = tokens.known(token)
        if found is None:
            if self._ring is not None and self._ring.known(token) is not None:
                return False
            found = await tokens.verify(token)
        request.account, request.key_name = found.account, found.account.name
        request.scope, request.fleet = found.deployments, found.fleet
        return True

    def lacks_key(self, request: RoutedRequest) -> bool:
        """Whether a key or a token is required and was not found yet."""
        return self.requires_keys and request.key_name is None

    def check(self, request: RoutedRequest, api: Api, key: bytes | None) -> None:
        """Check a key that was found.

        Raises:
            KeyMissingError: There is none.
            KeyRefusedError: It is not known.
            TokenRefusedError: It is a token, or keys are not accepted.
            TooManyAuthFailuresError: See `AuthFailures.check`.
        """
        if not self.requires_keys:
            return
        if not key:
            raise self.missing(request, api)
        found = None if self._ring is None else self._ring.known(key)
        if self._failures is not None:
            self._failures.check(request.client, None if found is None else found.name)
        if found is not None:
            limits = found.account.limits
            request.key_name, request.scope, request.fleet = found.name, limits.deployments, limits.fleet
        elif self._tokens is None:
            raise KeyRefusedError(KEY_UNKNOWN)
        elif self._ring is None or looks_like_token(key):
            raise TokenRefusedError(self._token_needed(self._tokens))
        else:
            raise KeyRefusedError(KEY_UNKNOWN)

    async def failed(self, request: RoutedRequest, error: RequestError) -> RequestError:
        """Count a request that was refused, if it was for its key or token; the error to answer.

        A token is always verified, also beyond the rate: it cannot be guessed, and clients get new ones all the time.
        """
        if self._failures is None or not isinstance(error, KeyRefusedError | TokenRefusedError):
            return error
        return await self._failures.count(request.client) or error

    def known(self, request: RoutedRequest) -> Account | None:
        """The account of a request whose key or token was checked; None where none is required.

        Raises:
            KeyRefusedError: The key was removed meanwhile.
        """
        if isinstance(request.account, Account):
            return request.account
        if self._ring is None:
            return None
        key = self._ring.named(request.key_name)
        if key is None:
            raise KeyRefusedError(KEY_UNKNOWN)
        return key.account

    async def admit(self, request: RoutedRequest, characters: int) -> tuple[str, Charge]:
        """Admit one request, and reserve what it will use of its key's quota.

        Returns:
            The name of the key or of the token's caller, or an address, by which callers take turns; and the charge,
            which has to be settled.

        Raises:
            KeyRefusedError: The key was removed meanwhile.
            RateLimitedError: The rate is exceeded.
            QuotaError: The quota is used up.
        """
        account = self.known(request)
        if account is None:
            if self._anonymous.requests_per_s is not None:
                await self._usage.reserve(self._client(request.client), 0)
            return request.client, NO_CHARGE
        return account.name, await self._usage.reserve(account, characters)

    async def used(self, account: Account) -> tuple[int, int | None]:
        """Characters that a caller has used in this period, and the limit."""
        return await self._usage.used(account), account.limits.character_limit

    def _client(self, address: str) -> Account:
        client = client_of(address)
        account = self._clients.get(client)
        if account is None:
            name = f"{ADDRESSES}/{client}"
            account = self._clients[client] = Account(name, self._anonymous, self._clock(), counted=False)
        return account
