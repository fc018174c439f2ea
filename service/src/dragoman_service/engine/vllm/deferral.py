"""When the pod has the engine capture the CUDA graphs that `graphs` deferred: while it is idle, else at intervals."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable

from prometheus_client import Gauge

from dragoman_service.metric_definitions import CUDA_GRAPHS_DEFERRED

log = logging.getLogger(__name__)

DEFERRED = Gauge(CUDA_GRAPHS_DEFERRED.name, CUDA_GRAPHS_DEFERRED.help)

POLL_S = 0.05
"""Time between two looks at whether the engine is idle, and minimum time without requests before a capture."""

BUSY_S = 2.0
"""Time after a capture until the next one if the engine is not idle: its steps wait for about 0.1 s meanwhile."""


async def capture_rest(
    capture_next: Callable[[], Awaitable[int]],
    generating: Callable[[], int],
    is_awake: Callable[[], bool],
) -> None:
    """Have the engine capture one size after the other: at once while it is idle, else one every `BUSY_S`.

    Args:
        capture_next: Captures a size; returns how many are left.
        generating: Unfinished generations of the engine.
        is_awake: Whether the engine can capture: one that sleeps has no KV cache.
    """
    began_s = captured_s = time.monotonic()
    left, was_idle = True, False
    with DEFERRED.track_inprogress():
        while left:
            await asyncio.sleep(POLL_S)
            idle = not generating()
            due = (idle and was_idle) or time.monotonic() - captured_s >= BUSY_S
            was_idle = idle
            if not is_awake():
                # The request that wakes it shall not wait for a capture.
                captured_s = time.monotonic()
            elif due:
                left = bool(await capture_next())
                captured_s = time.monotonic()
    log.info("no CUDA graphs are left to capture, %.0f s after the model was loaded", captured_s - began_s)
