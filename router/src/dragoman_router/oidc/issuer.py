"""The signing keys of an issuer: fetched by its discovery document, and kept while it does not answer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

import aiohttp
import msgspec

from dragoman_router.oidc.claims import SigningKeys, signing_keys

log = logging.getLogger(__name__)

DISCOVERY_PATH = "/.well-known/openid-configuration"
REFRESH_S = 300
"""A key that the issuer withdraws is accepted no longer than this, and `tokens.CACHED_S`."""
MIN_INTERVAL_S = 10
"""Minimum time between two requests to the issuer; clients cannot shorten it."""
TIMEOUT_S = 5
MAX_DOCUMENT_BYTES = 256 * 1024

Document = TypeVar("Document")


class _Discovery(msgspec.Struct):
    issuer: str
    jwks_uri: str


class _KeySet(msgspec.Struct):
    keys: list[Any]


class IssuerError(Exception):
    """The issuer did not answer with its keys."""


class Issuer:
    """The signing keys of one issuer.

    Args:
        url: Its identifier, the `iss` of its tokens; the discovery document is below it.
        clock: Monotonic seconds.

    Attributes:
        keys: The usable ones, empty until the issuer has answered for the first time.
    """

    def __init__(self, url: str, clock: Callable[[], float]) -> None:
        self.url = url
        self.keys: SigningKeys = {}
        self._clock = clock
        self._tried_s = float("-inf")
        self._refreshing: asyncio.Task[None] | None = None
        self._on_refresh: Callable[[bool], object] = lambda _: None

    async def watch(self, on_refresh: Callable[[bool], object]) -> None:
        """Refresh the keys until cancelled.

        Args:
            on_refresh: Called after each refresh with whether the issuer answered.
        """
        self._on_refresh = on_refresh
        try:
            while True:
                await self.refresh()
                await asyncio.sleep(REFRESH_S if self.keys else MIN_INTERVAL_S)
        finally:
            if self._refreshing is not None:
                self._refreshing.cancel()

    async def refresh(self) -> None:
        """Fetch the keys, unless that was tried within `MIN_INTERVAL_S`; those that are known stay where it fails."""
        if self._refreshing is None or self._refreshing.done():
            if self._clock() - self._tried_s < MIN_INTERVAL_S:
                return
            self._tried_s = self._clock()
            self._refreshing = asyncio.create_task(self._refresh())
        # A client that disconnects must not end what others wait for.
        await asyncio.shield(self._refreshing)

    async def _refresh(self) -> None:
        try:
            self.keys = await self._fetched()
        except (IssuerError, aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            reason = str(error) or type(error).__name__
            log.warning("signing keys of %s: %s; %d known", self.url, reason, len(self.keys))
            self._on_refresh(False)
        else:
            self._on_refresh(True)

    async def _fetched(self) -> SigningKeys:
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as http:
            discovery = await _document(http, self.url.rstrip("/") + DISCOVERY_PATH, _Discovery)
            if discovery.issuer != self.url:
                raise IssuerError(
                    f"its discovery document is of {discovery.issuer[:200]!r}; set that as issuer"
                )
            if self.url.startswith("https:") and not discovery.jwks_uri.startswith("https:"):
                raise IssuerError("its jwks_uri is not HTTPS")
            listed = await _document(http, discovery.jwks_uri, _KeySet)
        # In a thread: each key takes about 0.1 ms.
        keys = await asyncio.to_thread(signing_keys, listed.keys)
        if not keys:
            raise IssuerError("it lists no key that is usable for signatures")
        return keys


async def _document(http: aiohttp.ClientSession, url: str, shape: type[Document]) -> Document:
    async with http.get(url, allow_redirects=False) as answer:
        if answer.status != 200:
            raise IssuerError(f"{url} answered {answer.status}")
        body = bytearray()
        async for part in answer.content.iter_any():
            body += part
            if len(body) > MAX_DOCUMENT_BYTES:
                raise IssuerError(f"{url} answered more than {MAX_DOCUMENT_BYTES} bytes")
    try:
        return msgspec.json.decode(bytes(body), type=shape)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise IssuerError(f"{url}: {error}") from None
