"""A pod or a router whose event loop is watched: its longest stall goes to a file.

    python bench/hostile/watched.py FILE serve --model org/model --engine scripted --port 8000
    python bench/hostile/watched.py FILE router --static routers.yaml --port 8080

A task on the loop ticks every millisecond. CPU time between two ticks is what kept the loop from them: a callback of
its own, or a thread that had the interpreter's lock. A clock would count other processes of a busy machine too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman_bench.stalls import TICK_S, Stall, Stalls


async def watch(stalls: Stalls) -> None:
    """Tick until cancelled."""
    last = _now()
    while True:
        await asyncio.sleep(TICK_S)
        now = _now()
        longest, _, ticks = stalls.read()
        stall = Stall(*(max(most, at - before) for most, at, before in zip(longest, now, last, strict=True)))
        stalls.write(stall, now.process_s, ticks + 1)
        last = now


def _now() -> Stall:
    return Stall(time.thread_time(), time.process_time(), time.monotonic())


def serve(stalls: Stalls, flags: list[str]) -> int:
    """Run a pod; returns its exit status."""
    from dragoman_service import __main__ as service

    create: Callable[..., Any] = vars(service)["create_app"]

    def watched(*arguments: Any) -> Any:
        app = create(*arguments)
        app.state.watches.append(lambda: watch(stalls))
        return app

    vars(service)["create_app"] = watched
    return service.main(flags)


def route(stalls: Stalls, flags: list[str]) -> int:
    """Run a router; returns its exit status."""
    from dragoman_router import __main__ as router

    run = router._run

    async def watched(settings: Any) -> None:
        task = asyncio.create_task(watch(stalls))
        try:
            await run(settings)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    router._run = watched
    return router.main(flags)


if __name__ == "__main__":
    file, command, *rest = sys.argv[1:]
    sys.exit({"serve": serve, "router": route}[command](Stalls(Path(file)), rest))
