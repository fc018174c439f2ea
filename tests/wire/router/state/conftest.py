"""Routers that share state through a Redis server on this machine."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

SECRET = "a-secret-of-alice"
KEY = {"Authorization": f"DeepL-Auth-Key {SECRET}"}
PATIENT_S = 10.0
"""Timeout of Redis in tests that are not about it: this machine may be busy."""


class Member:
    """One router of several, and what a client of alice's sees."""

    def __init__(self, router: Any) -> None:
        self.router = router

    async def translate(self, characters: int = 1, **options: Any) -> int:
        """Status of a translation."""
        options.setdefault("headers", KEY)
        status, _, _ = await self.router.translate(text="x" * characters, **options)
        return int(status)

    async def used(self) -> int:
        """The response of `/v2/usage`."""
        return int((await self.router.get("/v2/usage", headers=KEY))[1]["character_count"])

    async def until_used(self, characters: int) -> None:
        """Wait for `used`: other routers send what they charge without a limit in batches."""
        async with asyncio.timeout(10):
            while await self.used() != characters:  # noqa: ASYNC110 - the server has it
                await asyncio.sleep(0.01)

    def metric(self, name: str, **labels: str) -> float:
        """A sample of the router's metrics."""
        return self.router.state.metrics.registry.get_sample_value(name, labels) or 0.0


StartMember = Callable[..., Awaitable[Member]]


@pytest.fixture
async def start_member(start_router: Any, start_upstream: Any, tmp_path: Path) -> StartMember:
    """Start a router with one key; `limits` are the fields of its file."""
    keys = tmp_path / "keys"
    keys.mkdir()
    replica = (await start_upstream()).replica()
    names = iter(f"router-{number}" for number in range(1, 100))

    async def start(url: str, limits: dict[str, Any] | None = None, **options: Any) -> Member:
        (keys / "alice").write_text(json.dumps({"key": SECRET, **(limits or {})}))
        settings = {"keys_dir": keys, "state_timeout_s": PATIENT_S, "router_id": next(names), **options}
        router = await start_router(state_url=url, **settings)
        router.serve("a", replica)
        return Member(router)

    return start
