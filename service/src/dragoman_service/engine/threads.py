"""Blocking work beside the event loop, in threads that no exit of the process waits for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")


async def in_daemon_thread(work: Callable[[], Result]) -> Result:
    """The result of `work`; unlike with `asyncio.to_thread`, the interpreter can exit while it runs."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Result] = loop.create_future()

    def settle(value: Result | None, error: BaseException | None) -> None:
        if outcome.cancelled():
            return
        if error is not None:
            outcome.set_exception(error)
        else:
            outcome.set_result(value)  # type: ignore[arg-type]

    def run() -> None:
        value: Result | None = None
        failed: BaseException | None = None
        try:
            value = work()
        except BaseException as error:
            failed = error
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, failed)

    thread = threading.Thread(target=run, name="vllm", daemon=True)
    thread.start()
    try:
        return await outcome
    finally:
        if outcome.done() and not outcome.cancelled():
            # It is past its work; once it has ended, it holds nothing alive.
            thread.join()
