"""CUDA graphs in two parts, with a manager in place of vLLM's."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain, pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman_service.engine.vllm import graphs
from dragoman_service.engine.vllm.arguments import graph_sizes
from dragoman_service.engine.vllm.graphs import (
    PADDING,
    DeferredGraphs,
    capture_rest,
    first_sizes,
    next_size,
    with_graphs,
)

MAX_SEQUENCES = 200
SIZES = graph_sizes(2048)


def test_a_step_is_at_most_doubled_by_the_first_sizes() -> None:
    first = first_sizes(SIZES)
    assert (first[0], first[-1]) == (1, 2048)
    assert len(first) < len(SIZES) / 5
    for tokens in range(1, 2049):
        assert min(size for size in first if size >= tokens) <= PADDING * tokens


@pytest.mark.parametrize("sizes", [[1], [7], [3, 5, 6], [1, 2, 4, 8, 100], []])
def test_the_first_sizes_are_of_those_that_there_are(sizes: list[int]) -> None:
    first = first_sizes(sizes)
    assert first == sorted(set(first) & set(sizes))
    assert first[-1:] == sizes[-1:]


def test_required_sizes_are_among_the_first() -> None:
    assert 200 in first_sizes(SIZES, [200])


def test_the_widest_gap_is_divided_first() -> None:
    assert next_size([3, 24, 40, 48], [1, 2, 4, 16, 32, 60]) == 24
    captured, left = first_sizes(SIZES), sorted(set(SIZES) - set(first_sizes(SIZES)))
    gaps = []
    while left:
        size = next_size(left, captured)
        left.remove(size)
        captured = sorted([*captured, size])
        gaps.append(max(high / low for low, high in pairwise(captured) if low >= 16))
    assert gaps[7] <= 1.6
    assert gaps[-1] < 1.51


def test_a_step_uses_the_next_size_that_is_captured() -> None:
    every = {(tokens, 0): f"graph {8 * -(-tokens // 8)}" for tokens in range(1, 33)}
    found = with_graphs(every, [8, 32])
    assert [found[tokens, 0] for tokens in (1, 8, 9, 24, 32)] == ["graph 8"] * 2 + ["graph 32"] * 3
    assert with_graphs(every, range(8, 33, 8)) == every
    assert (32, 0) not in with_graphs(every, [8, 16])


@dataclass(frozen=True)
class Graph:
    """As vLLM describes one."""

    mode: str
    num_tokens: int


@dataclass
class Manager:
    """As vLLM's: candidates by tokens of a step, and a capture of all that is described."""

    captured: list[Graph] = field(default_factory=list)
    calls: list[tuple[Any, ...]] = field(default_factory=list)
    fails: bool = False

    def __post_init__(self) -> None:
        mixed = [Graph("piecewise", size) for size in SIZES]
        decode = [Graph("full", size) for size in SIZES if size <= MAX_SEQUENCES]
        self._capture_descs = {"piecewise": mixed, "full": decode}
        self._candidates = {
            (tokens, 0): [graph for graph in (*decode, *mixed) if graph.num_tokens == size]
            for low, size in zip([0, *SIZES], SIZES, strict=False)
            for tokens in range(low + 1, size + 1)
        }

    def capture(self, *args: Any, **more: Any) -> None:
        if self.fails:
            raise RuntimeError("out of memory")
        self.calls.append((args, more))
        for described in self._capture_descs.values():
            self.captured += described

    def usable(self) -> set[Graph]:
        return {graph for candidates in self._candidates.values() for graph in candidates}


def test_all_graphs_are_captured_once_and_a_step_uses_captured_ones_only() -> None:
    manager = Manager()
    candidates, described = dict(manager._candidates), list(chain(*manager._capture_descs.values()))
    deferred = DeferredGraphs(manager)
    manager.capture("model", has_lora=False)
    assert len(manager.captured) < len(described) / 4
    # A step of decoding has a graph of its own, however many sequences.
    assert Graph("full", MAX_SEQUENCES) in manager.captured
    while deferred.left:
        assert manager.usable() <= set(manager.captured)
        left = deferred.left
        deferred.capture_next()
        assert deferred.left == left - 1
    assert sorted(manager.captured, key=str) == sorted(described, key=str)
    assert manager._candidates == candidates
    assert set(map(str, manager.calls)) == {"(('model',), {'has_lora': False})"}


def test_after_a_failed_capture_the_captured_graphs_stay_in_use(caplog: pytest.LogCaptureFixture) -> None:
    manager = Manager()
    deferred = DeferredGraphs(manager)
    manager.capture()
    deferred.capture_next()
    usable, manager.fails = manager.usable(), True
    deferred.capture_next()
    assert deferred.left == 0
    assert manager.usable() == usable
    assert (
        f"{len(SIZES) - 15} sizes of CUDA graphs are not captured: RuntimeError: out of memory" in caplog.text
    )


async def captures(
    monkeypatch: pytest.MonkeyPatch, sizes: int, generating: Callable[[], int], is_awake: Callable[[], bool]
) -> int:
    """How many of the sizes are captured within half a second, with a look every 10 ms and 0.1 s while busy."""
    monkeypatch.setattr(graphs, "POLL_S", 0.01)
    monkeypatch.setattr(graphs, "BUSY_S", 0.1)
    left = sizes

    async def capture_next() -> int:
        nonlocal left
        left -= 1
        return left

    try:
        async with asyncio.timeout(0.5):
            await capture_rest(capture_next, generating, is_awake)
    except TimeoutError:
        assert left
    return sizes - left


async def test_an_idle_engine_captures_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await captures(monkeypatch, 8, lambda: 0, lambda: True) == 8


async def test_a_busy_engine_captures_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1 <= await captures(monkeypatch, 8, lambda: 3, lambda: True) <= 5


async def test_a_sleeping_engine_captures_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await captures(monkeypatch, 8, lambda: 0, lambda: False) == 0


async def test_a_request_that_wakes_the_engine_waits_for_no_capture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "POLL_S", 0.001)
    looks = itertools.count(1)
    now_s = 0.0
    monkeypatch.setattr(graphs, "time", SimpleNamespace(monotonic=lambda: now_s))

    def is_awake() -> bool:
        nonlocal now_s
        look = next(looks)
        now_s += graphs.BUSY_S / 4
        if look == 13:
            raise EOFError
        return look > 10

    async def capture_next() -> int:
        raise AssertionError

    # Asleep for 10 looks, which is longer than between two captures, and then busy for 2.
    with pytest.raises(EOFError):
        await capture_rest(capture_next, lambda: 1, is_awake)
