"""Builders for the simulator's tests."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dragoman_simulate.speed import read_speed_table
from dragoman_simulate.trace import Trace
from dragoman_simulate.view import Alike, Metrics, ScalingLimits, View

SPEED = read_speed_table()


@dataclass(frozen=True)
class Build:
    """A trace from rates, limits, and what a policy sees."""

    speed = SPEED

    @staticmethod
    def trace(rates: Sequence[float], tokens: float = 85, seed: int | None = 0, **changes: Any) -> Trace:
        """Requests per second, Poisson around these rates; exactly these with seed None."""
        counts = np.asarray(rates, float)
        if seed is not None:
            counts = np.random.default_rng(seed).poisson(counts).astype(float)
        sizes = np.full(len(counts), float(tokens))
        return Trace("test", counts, np.full(len(counts), 90.0), sizes, **changes)

    @staticmethod
    def limits(**changes: Any) -> ScalingLimits:
        """One to twelve replicas of 32 sequences that start in half a minute."""
        defaults = {
            "minimum": 1, "maximum": 12, "max_num_seqs": 32, "target_wait_s": 2.0, "start_up_s": 30.0,
            "kv_cache_tokens": SPEED.kv_cache_tokens, "idle_s": 900.0, "tick_s": 5, "objective": 0.95,
        }  # fmt: skip
        merged = defaults | changes
        return ScalingLimits(**({"target_concurrency": 0.8 * merged["max_num_seqs"]} | merged))

    @staticmethod
    def view(
        now_s: float,
        replicas: int,
        *,
        running: float = 0.0,
        waiting: float = 0.0,
        pending: int = 0,
        queued: float = 0.0,
        blind: bool = False,
    ) -> View:
        """`replicas` ready ones that share this work."""
        each = max(1, replicas)
        alike = (Alike(replicas, running / each, waiting / each, 0.1),) if replicas else ()
        metrics = None if blind else Metrics(alike, 0.0, 90.0, 85.0)
        return View(now_s, replicas + pending, replicas, pending, queued, metrics)


@pytest.fixture(scope="session")
def build() -> Build:
    return Build()


@pytest.fixture
def rush(tmp_path: Path) -> Path:
    """A quiet minute, a burst of two minutes, two quiet ones."""
    path = tmp_path / "rush.jsonl"
    rates = [40] * 60 + [250] * 120 + [40] * 120
    path.write_text(
        "".join(
            json.dumps({"time": second, "count": rate, "source_tokens": 90, "target_tokens": 85}) + "\n"
            for second, rate in enumerate(rates)
        )
    )
    return path
