"""An engine pod whose event loop is watched: how long it stands still at most, told through a file.

    python bench/pod/watched_pod.py FILE --model org/model --engine scripted --port 8000

A task on the loop ticks every millisecond. CPU time between two ticks is what kept the loop from them: a callback of
its own, or a thread that held the interpreter's lock. A clock would count other processes of a busy machine too.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman_bench.stalls import TICK_S, Stall, Stalls
from dragoman_service import __main__ as service


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


def main() -> int:
    """Run the pod; returns its exit status."""
    stalls = Stalls(Path(sys.argv[1]))
    create: Callable[..., Any] = vars(service)["create_app"]

    def watched(*arguments: Any) -> Any:
        app = create(*arguments)
        app.state.watches.append(lambda: watch(stalls))
        return app

    vars(service)["create_app"] = watched
    return service.main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(main())
