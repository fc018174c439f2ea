"""What the measuring commands have in common: how they end, and which numbers they take."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


async def until_terminated(work: Coroutine[Any, Any, int]) -> int:
    """Run until done, or until SIGTERM, which ends servers as orderly as an interrupt does.

    Raises:
        CancelledError: SIGTERM came.
    """
    task = asyncio.ensure_future(work)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await task


def seconds(text: str) -> float:
    """A time for argparse, above 0.

    Raises:
        ArgumentTypeError: It is not above 0, or not finite.
        ValueError: It is no number.
    """
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def whole(text: str) -> int:
    """A count for argparse, 1 or more.

    Raises:
        ArgumentTypeError: It is less than 1.
        ValueError: It is no whole number.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not 1 or more")
    return value
