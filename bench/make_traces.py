"""Writes the traces that the autoscaler is judged on: `python bench/make_traces.py [DIRECTORY] [--seed 20]`.

Every trace is one second per line, `{"time", "count", "source_tokens", "target_tokens"}`: so many requests of
these mean lengths, drawn with a seed; another seed makes traces that no rule was tried on. Arrivals are Poisson
around a rate; lengths follow the load that the engine's speed was measured with (half log-uniform from 10 to 200
tokens of output, half uniform, mean 85). A replica with 32 sequences serves about 100 such requests a second, so the
rates below need one to ten.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20
HOUR = 3600
OUT_MEAN, OUT_DEVIATION = 85.0, 57.0
IN_MEAN, IN_DEVIATION = 90.0, 40.0


@dataclass(frozen=True)
class Recipe:
    """A trace: requests per second as a function of the second, and what else happens."""

    duration_s: int
    rate: Callable[[int, np.random.Generator], float]
    events: tuple[dict[str, Any], ...] = field(default=())


def wave(second: int, period_s: float, low: float, high: float) -> float:
    """A sine between two rates that begins at its lowest."""
    return low + (high - low) * (1 - math.cos(2 * math.pi * second / period_s)) / 2


class Wander:
    """Slow noise around 1 that forgets itself within minutes, as traffic of many people does."""

    def __init__(self, deviation: float, memory_s: float) -> None:
        self._keep = math.exp(-1 / memory_s)
        self._step = deviation * math.sqrt(1 - self._keep**2)
        self._value = 0.0

    def next(self, draw: np.random.Generator) -> float:
        """The factor for the next second."""
        self._value = self._keep * self._value + self._step * draw.standard_normal()
        return 1 + self._value


def daily(second: int, draw: np.random.Generator, wander: Wander = Wander(0.04, 300)) -> float:  # noqa: B008
    """A night, a morning that rises within two hours, a dip at noon, an evening."""
    hour = second / HOUR
    morning = 1 / (1 + math.exp(-(hour - 8) * 2.2))
    evening = 1 / (1 + math.exp((hour - 20) * 1.6))
    lunch = 1 - 0.25 * math.exp(-(((hour - 13) / 0.8) ** 2))
    return (60 + 740 * morning * evening * lunch) * wander.next(draw)


class Spikes:
    """Bursts of three to five times the rate, at random: a gap of ten minutes on average, one to four minutes long."""

    def __init__(self) -> None:
        self._ends = 0.0
        self._begins = 0.0
        self._high = 0.0

    def rate(self, second: int, draw: np.random.Generator) -> float:
        """Requests per second; 150 between the bursts."""
        if second >= self._ends:
            self._begins = second + draw.exponential(600)
            self._ends = self._begins + draw.uniform(60, 240)
            self._high = 150 * draw.uniform(3, 5)
        return self._high if second >= self._begins else 150.0


class OnOff:
    """Bursts of 10 to 40 s at 3 to 12 times 60/s, pauses of 10 to 100 s, as programs send them."""

    def __init__(self) -> None:
        self._ends = self._begins = self._high = 0.0

    def rate(self, second: int, draw: np.random.Generator) -> float:
        """Requests per second; 60 between the bursts."""
        if second >= self._ends:
            self._begins = second + draw.uniform(10, 100)
            self._ends = self._begins + draw.uniform(10, 40)
            self._high = 60 * draw.uniform(3, 12)
        return self._high if second >= self._begins else 60.0


class SelfSimilar:
    """Many clients that are active and silent for times with a long tail, whose sum is bursty at every scale.

    Source: Willinger, Taqqu, Sherman and Wilson, Self-Similarity Through High-Variability, 1997.
    """

    CLIENTS, EACH, SHAPE, ACTIVE_S, SILENT_S, LONGEST_S = 40, 25.0, 1.3, 5.0, 30.0, 1800.0
    BEFORE_S = 3600
    """Time before the trace, in which the clients, all active at first, fall out of step."""

    def __init__(self) -> None:
        self._until = np.full(self.CLIENTS, -np.inf)
        self._active = np.zeros(self.CLIENTS, bool)

    def rate(self, second: int, draw: np.random.Generator) -> float:
        """25 requests per second for each client that is active."""
        for passed in range(-self.BEFORE_S, 0) if second == 0 else ():
            self._switch(passed, draw)
        self._switch(second, draw)
        return self.EACH * float(self._active.sum())

    def _switch(self, second: int, draw: np.random.Generator) -> None:
        for client in np.flatnonzero(self._until <= second):
            self._active[client] = not self._active[client]
            least = self.ACTIVE_S if self._active[client] else self.SILENT_S
            self._until[client] = second + min(self.LONGEST_S, least * (1 + draw.pareto(self.SHAPE)))


class FlashCrowd:
    """From 100/s to 4 to 10 times as many within a minute, every half an hour on average; it fades in minutes."""

    def __init__(self) -> None:
        self._next = 0.0
        self._crowds: list[tuple[float, float, float, float]] = []

    def rate(self, second: int, draw: np.random.Generator) -> float:
        """Requests per second."""
        while second >= self._next:
            if self._next:
                peak, rise_s, fade_s = draw.uniform(300, 900), draw.uniform(5, 60), draw.uniform(60, 400)
                self._crowds.append((self._next, peak, rise_s, fade_s))
            self._next += 300 + draw.exponential(1500)
        total = 100.0
        for begins, peak, rise_s, fade_s in self._crowds:
            since = second - begins
            total += peak * (since / rise_s if since < rise_s else math.exp((rise_s - since) / fade_s))
        return total


RECIPES = {
    "steady": Recipe(3 * HOUR, lambda _second, _draw: 400.0),
    "daily": Recipe(24 * HOUR, daily),
    "spikes": Recipe(3 * HOUR, Spikes().rate),
    "step": Recipe(3 * HOUR, lambda second, _draw: 600.0 if 3604 <= second < 7211 else 200.0),
    "ramp": Recipe(3 * HOUR, lambda second, _draw: 100 + 800 * min(1.0, second / (2.5 * HOUR))),
    "sawtooth": Recipe(3 * HOUR, lambda second, _draw: 150 + 550 * ((second + 53) % 300) / 300),
    "silence": Recipe(
        3 * HOUR,
        lambda second, _draw: 0.0 if 3608 <= second < 7196 else wave(second, HOUR, 80, 320),
    ),
    "outage": Recipe(
        3 * HOUR,
        lambda second, _draw: wave(second, 3 * HOUR, 150, 850),
        ({"event": "metrics_outage", "from": 4800, "to": 6000},),
    ),
    "on-off": Recipe(3 * HOUR, OnOff().rate),
    "self-similar": Recipe(3 * HOUR, SelfSimilar().rate),
    "flash-crowds": Recipe(3 * HOUR, FlashCrowd().rate),
}


def lines(recipe: Recipe, draw: np.random.Generator) -> Iterator[str]:
    """The lines of one trace."""
    for event in recipe.events:
        yield json.dumps(event)
    for second in range(recipe.duration_s):
        count = int(draw.poisson(max(0.0, recipe.rate(second, draw))))
        if count:
            source = max(5, round(draw.normal(IN_MEAN, IN_DEVIATION / math.sqrt(count))))
            target = max(10, round(draw.normal(OUT_MEAN, OUT_DEVIATION / math.sqrt(count))))
            yield json.dumps(
                {"time": second, "count": count, "source_tokens": source, "target_tokens": target}
            )
    yield json.dumps({"event": "end", "time": recipe.duration_s})


def main() -> None:
    """Write every trace, gzip'd, with nothing in it that differs from run to run."""
    parser = argparse.ArgumentParser(description="Write the traces that the autoscaler is judged on.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent / "traces")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--hours", type=float, help="duration of every trace (default: its own)")
    options = parser.parse_args()
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    for name, recipe in RECIPES.items():
        if options.hours:
            recipe = replace(recipe, duration_s=round(options.hours * HOUR))
        draw = np.random.default_rng([options.seed, *name.encode()])
        text = "\n".join(lines(recipe, draw)) + "\n"
        path = folder / f"{name}.jsonl.gz"
        path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
        print(f"{path}  {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
