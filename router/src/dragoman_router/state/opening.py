"""Opens the state that routers share."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

from dragoman_router.settings import Settings
from dragoman_router.state.glossaries import RedisGlossaries
from dragoman_router.state.redis import StateClient, StateMetrics
from dragoman_router.state.usage import RedisUsage

DRAIN_S = 5.0
"""Maximum time that an end takes to send what is not sent."""


@dataclass(frozen=True, slots=True)
class SharedState:
    """State in one server."""

    client: StateClient
    usage: RedisUsage
    glossaries: RedisGlossaries

    @property
    def metrics(self) -> StateMetrics:
        """How it does."""
        return self.client.metrics

    def work(self) -> list[Coroutine[Any, Any, None]]:
        """What runs as long as the router."""
        return [self.client.run(), self.usage.outbox.run()]

    async def drain(self) -> None:
        """Send what is left, after `work` has ended."""
        pings = asyncio.create_task(self.client.run())
        try:
            await self.usage.outbox.drain(DRAIN_S)
        finally:
            pings.cancel()


async def open_state(settings: Settings, stack: AsyncExitStack) -> SharedState:
    """Connect to the server that the settings name.

    Raises:
        StateError: The server refuses this router.
    """
    assert settings.state_url is not None
    client = StateClient(
        settings.state_url.get_secret_value(),
        settings.state_prefix,
        settings.state_timeout_s,
        StateMetrics(),
    )
    stack.push_async_callback(client.aclose)
    await client.connect()
    return SharedState(client, RedisUsage(client, settings.router_id), RedisGlossaries(client))
