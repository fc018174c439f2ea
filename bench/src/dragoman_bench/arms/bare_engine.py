"""AsyncLLM without HTTP: the load runs on the engine's own event loop, which is uvloop's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from dragoman_bench.arms.async_engine import AsyncEngine
from dragoman_bench.arms.driver import Run, RunRequest, driver_app
from dragoman_bench.arms.options import ArmOptions, arm_options, serve
from dragoman_bench.loads import stream
from dragoman_tune.closed_loop import Pace, closed_loop
from dragoman_tune.figures import figures
from dragoman_tune.requests import Answer, Request


def started(options: ArmOptions) -> tuple[Run, Callable[[], None]]:
    """An engine, and what loads it."""
    engine = AsyncEngine(options)

    async def send(request: Request) -> Answer:
        await engine.translate(request)
        return Answer()

    async def run(wanted: RunRequest) -> dict[str, Any]:
        pace = Pace(wanted.window_s, wanted.ramp_s, wanted.drain_s)
        requests = stream(wanted.kind, options.model, wanted.requests, wanted.seed)
        return asdict(figures(await closed_loop(send, requests, wanted.in_flight, pace)))

    return run, engine.close


if __name__ == "__main__":
    chosen = arm_options()
    serve(driver_app(lambda: started(chosen)), chosen.port)
