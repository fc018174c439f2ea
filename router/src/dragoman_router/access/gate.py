"""Authentication by API key, and rate limits; off unless configured."""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from dragoman_protocols.errors import KeyRefusedError
from dragoman_protocols.keys import key_in_head
from dragoman_router.access.accounts import NO_CHARGE, Account, Charge, Limits
from dragoman_router.access.keys import Key, KeyRing
from dragoman_router.access.usage import Usage
from dragoman_router.request import Request

MAX_ADDRESSES = 10_000
"""Maximum number of addresses whose rate is kept."""

ADDRESSES = "address"
"""Before a slash in the name of an address; names of keys are names of files and have no slash."""


class Gate:
    """Keys and rates.

    Args:
        ring: The keys; None requires none.
        anonymous_requests_per_s: Rate of one client's address if there are no keys; None is without limit.
    """

    def __init__(
        self,
        ring: KeyRing | None,
        anonymous_requests_per_s: float | None,
        usage: Usage,
        clock: Callable[[], float],
    ) -> None:
        self._ring = ring
        self._anonymous = Limits(requests_per_s=anonymous_requests_per_s)
        self._clients: LRUCache[str, Account] = LRUCache(MAX_ADDRESSES)
        self._usage, self._clock = usage, clock

    @property
    def requires_keys(self) -> bool:
        """Whether requests need a key."""
        return self._ring is not None

    def early(self, request: Request) -> None:
        """Check the key in the head of a request; a body may still have one.

        Raises:
            KeyRefusedError: A key was sent, and it is not known.
        """
        if self._ring is not None and (key := key_in_head(request)):
            request.key_name = self._ring.find(key).name

    def lacks_key(self, request: Request) -> bool:
        """Whether a key is required and was not found yet."""
        return self._ring is not None and request.key_name is None

    def check(self, request: Request, key: bytes | None) -> None:
        """Check a key that was found.

        Raises:
            KeyMissingError: There is none.
            KeyRefusedError: It is not known.
        """
        if self._ring is not None:
            request.key_name = self._ring.find(key).name

    def known(self, request: Request) -> Key | None:
        """The key of a request whose key was checked; None where none is required.

        Raises:
            KeyRefusedError: It was removed meanwhile.
        """
        if self._ring is None:
            return None
        key = self._ring.named(request.key_name)
        if key is None:
            raise KeyRefusedError("this API key is not known here")
        return key

    async def admit(self, request: Request, characters: int) -> tuple[str, Charge]:
        """Admit one request, and reserve what it will use of its key's quota.

        Returns:
            The key's name, or an address, by which callers take turns; and the charge, which has to be settled.

        Raises:
            KeyRefusedError: The key was removed meanwhile.
            RateLimitedError: The rate is exceeded.
            QuotaError: The quota is used up.
        """
        key = self.known(request)
        if key is None:
            if self._anonymous.requests_per_s is not None:
                await self._usage.reserve(self._client(request.client), 0)
            return request.client, NO_CHARGE
        return key.name, await self._usage.reserve(key.account, characters)

    async def used(self, key: Key) -> tuple[int, int | None]:
        """Characters that a key has used in this period, and its limit."""
        return await self._usage.used(key.account), key.account.limits.character_limit

    def _client(self, address: str) -> Account:
        account = self._clients.get(address)
        if account is None:
            name = f"{ADDRESSES}/{address}"
            account = self._clients[address] = Account(name, self._anonymous, self._clock(), counted=False)
        return account
