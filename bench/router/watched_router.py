"""A router whose event loop is watched: for how long it turned to nothing else, at most.

    python bench/router/watched_router.py FILE [flags of `dragoman router`]

A timer on the loop fires every millisecond. FILE gets the longest CPU time of the loop's thread between two of its
firings, which is what the router was busy with, and the longest wall time, which is what its clients waited; SIGUSR1
begins anew.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from dragoman_router import __main__ as router
from dragoman_router.settings import Settings

TICK_S = 0.001


async def watch(path: Path) -> None:
    """Tick until cancelled; a new longest is written at once."""
    longest: dict[str, float] = {}

    def reset() -> None:
        longest.update(cpu_ms=0.0, wall_ms=0.0)
        path.write_text(json.dumps(longest))

    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, reset)
    reset()
    cpu_s, wall_s = time.thread_time(), time.monotonic()
    while True:
        await asyncio.sleep(TICK_S)
        now_cpu_s, now_wall_s = time.thread_time(), time.monotonic()
        took = {"cpu_ms": (now_cpu_s - cpu_s) * 1000, "wall_ms": (now_wall_s - wall_s) * 1000}
        if any(took[name] > longest[name] for name in took):
            longest.update({name: round(max(longest[name], took[name]), 1) for name in took})
            path.write_text(json.dumps(longest))  # noqa: ASYNC240 - as long as its own tick
        cpu_s, wall_s = now_cpu_s, now_wall_s


def main(path: Path, argv: list[str]) -> int:
    """Run the router until SIGTERM."""
    run = router._run

    async def watched(settings: Settings) -> None:
        task = asyncio.create_task(watch(path))
        try:
            await run(settings)
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    router._run = watched
    return router.main(argv)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
