"""CUDA graphs in two parts: a few sizes before the pod is ready, and the others while it serves.

vLLM captures a graph for each of about 75 numbers of tokens before it is ready. A step whose number has no graph yet is
padded to the next one that has, as vLLM does between two sizes.

vLLM's engine process captures the graphs. The pod's process decides when (`capture_rest`): while the engine is idle,
else at intervals. Tested with vLLM 0.32.

Source: `vllm/v1/worker/gpu/cudagraph_utils.py`
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import Any, TypeVar

from prometheus_client import Gauge

from dragoman_service.metric_definitions import CUDA_GRAPHS_DEFERRED

log = logging.getLogger(__name__)

DEFERRED = Gauge(CUDA_GRAPHS_DEFERRED.name, CUDA_GRAPHS_DEFERRED.help)

POLL_S = 0.05
"""Interval of the checks whether the engine is idle, and minimum time without requests before a capture."""

BUSY_S = 2.0
"""Time after a capture until the next one if the engine is not idle: its steps wait for about 0.1 s meanwhile."""

USED = ("capture", "needs_capture", "use_breakable_cg", "_capture_descs", "_candidates")
"""Of vLLM's `ModelCudaGraphManager`."""

PADDING = 2
"""The first sizes: each is at most so many times the next smaller one."""

Key = tuple[int, int]
"""Tokens of a step, and LoRA adapters."""

Graphs = TypeVar("Graphs")


def first_sizes(sizes: Collection[int], required: Iterable[int] = ()) -> list[int]:
    """The sizes to capture first, ascending: the largest, then each smallest one that is at least half of the last.

    Args:
        sizes: All sizes, in tokens of a step.
        required: Sizes that are among the first in any case.
    """
    ascending = sorted(sizes)
    chosen = set(required)
    position = len(ascending) - 1
    while position >= 0:
        chosen.add(ascending[position])
        half = bisect_left(ascending, ascending[position] / PADDING)
        position = half if half < position else position - 1
    return sorted(chosen)


def next_size(left: Collection[int], captured: Collection[int]) -> int:
    """The size to capture next: it divides the widest gap between two captured sizes, where steps are padded most.

    Args:
        left: Sizes that are not captured, each between two that are.
        captured: Those that are.
    """
    ascending = sorted(captured)
    gaps = []
    for low, high in pairwise(ascending):
        within = [size for size in left if low < size < high]
        if within:
            gaps.append((high / low, high, min(within, key=lambda size: abs(size - math.sqrt(low * high)))))
    return max(gaps)[-1]


def with_graphs(candidates: Mapping[Key, Graphs], captured: Collection[int]) -> dict[Key, Graphs]:
    """The graphs that a step may use, while only some sizes are captured.

    Args:
        candidates: The graphs that a step may use once all sizes are captured, by the tokens of the step.
        captured: Sizes of which all graphs are captured.

    Returns:
        For each number of tokens the graphs of the smallest captured size that is large enough.
    """
    ascending = sorted(captured)
    found: dict[Key, Graphs] = {}
    for tokens, adapters in candidates:
        position = bisect_left(ascending, tokens)
        if position < len(ascending) and (ascending[position], adapters) in candidates:
            found[tokens, adapters] = candidates[ascending[position], adapters]
    return found


class DeferredGraphs:
    """Has a manager capture a few sizes first, and the others later.

    Args:
        manager: vLLM's `ModelCudaGraphManager`, before it captures.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._graphs: dict[Any, list[Any]] = dict(manager._capture_descs)
        self._candidates = dict(manager._candidates)
        self._capture: Callable[[], None]
        sizes = {graph.num_tokens for graphs in self._graphs.values() for graph in graphs}
        largest = {max(graph.num_tokens for graph in graphs) for graphs in self._graphs.values() if graphs}
        self._captured = first_sizes(sizes, largest)
        self._left = sizes.difference(self._captured)
        self._select(self._captured)
        original = manager.capture

        def capture(*args: Any, **more: Any) -> None:
            self._capture = lambda: original(*args, **more)
            self._capture()
            self._serve()

        manager.capture = capture

    @property
    def left(self) -> int:
        """Sizes that are not captured yet."""
        return len(self._left)

    def capture_next(self) -> None:
        """Capture all graphs of one more size; give up if that fails."""
        size = next_size(self._left, self._captured)
        self._left.remove(size)
        self._select([size])
        try:
            self._capture()
        except Exception as error:
            self.give_up(f"{type(error).__name__}: {error}")
            return
        self._captured.append(size)
        self._serve()

    def give_up(self, reason: str) -> None:
        """Capture no more; the pod goes on with the graphs that it has."""
        log.warning("%d sizes of CUDA graphs are not captured: %s", len(self._left), reason)
        self._left.clear()

    def _select(self, sizes: Collection[int]) -> None:
        """Have the manager's next capture be of these sizes."""
        self._manager._capture_descs = {
            mode: [graph for graph in graphs if graph.num_tokens in sizes]
            for mode, graphs in self._graphs.items()
        }

    def _serve(self) -> None:
        self._manager._candidates = with_graphs(self._candidates, self._captured)


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
