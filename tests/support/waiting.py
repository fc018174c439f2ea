"""Waits for conditions."""

import asyncio
from collections.abc import Callable


async def until(holds: Callable[[], object], deadline_s: float = 60) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: It does not in time.
    """
    async with asyncio.timeout(deadline_s):
        while not holds():  # noqa: ASYNC110 - nothing sets an event
            await asyncio.sleep(0.005)
