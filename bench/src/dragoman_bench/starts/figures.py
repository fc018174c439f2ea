"""What is measured of a start, and the table of medians; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from dragoman.command_line import markdown

COLD, SIBLING, WARM, FIRST = "cold", "sibling", "warm", "first"
"""Variants: an empty cache and no sibling; an empty cache beside a sibling; no sibling, and the cache of the start
before on the node; and the start that makes the sibling's cache, which also writes bytecode and fills the page cache,
and is not compared."""

VARIANTS = (SIBLING, WARM, COLD)
"""What can be compared, in the order of a round."""

LOGGED = {
    "weights_s": re.compile(r"Loading weights took ([\d.]+) s"),
    "model_s": re.compile(r"Model loading took [\d.]+ GiB[^0-9]* and ([\d.]+) s"),
    "compile_s": re.compile(r"torch\.compile (?:takes|took) ([\d.]+) s"),
    "graphs_s": re.compile(r"Graph capturing finished in ([\d.]+) s"),
    "engine_s": re.compile(r"init engine \([^)]*\) took ([\d.]+) s"),
}
"""Seconds that vLLM 0.32 logs; what a release does not log is left out."""

PLAN_APPLIED = "Applying persisted startup plan"


@dataclass(frozen=True)
class Start:
    """One start to make.

    Args:
        variant: `cold`, `sibling`, `warm` or `first`.
        load_format: vLLM's argument; empty is its default.
    """

    variant: str
    load_format: str = ""

    @property
    def name(self) -> str:
        """As in the table."""
        return f"{self.variant}, {self.load_format}" if self.load_format else self.variant


def plan(rounds: int, variants: Sequence[str], load_formats: Sequence[str]) -> list[Start]:
    """All starts in their order: each round has every variant, so that slow minutes of a machine hit all of them.

    Args:
        rounds: Of all variants.
        variants: At least one of `VARIANTS`.
        load_formats: Further ways to load weights, each with the first of the variants.
    """
    chosen = [each for each in VARIANTS if each in variants]
    formats = [Start(chosen[0], each) for each in load_formats]
    round_of = [Start(chosen[0]), *formats, *map(Start, chosen[1:])]
    return [Start(FIRST), *(round_of * rounds)]


def has_time(start: Start, left_s: float | None, done: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a start fits into the rest of the budget: as long as the longest of its kind, or else of all."""
    if left_s is None:
        return True
    took = [(entry["variant"], entry["took_s"]) for entry in done]
    own = [took_s for variant, took_s in took if variant == start.variant]
    return left_s > max(own or [took_s for _, took_s in took], default=0.0)


def logged(text: str) -> dict[str, Any]:
    """What a pod's log says of its start."""
    found: dict[str, Any] = {}
    for name, pattern in LOGGED.items():
        if values := pattern.findall(text):
            found[name] = float(values[-1])
    found["profile_skipped"] = PLAN_APPLIED in text
    return found


def durations(phases_s: Mapping[str, float]) -> dict[str, float]:
    """Seconds in each phase, from the times at which they begin."""
    begun = list(phases_s.items())
    return {phase: round(end_s - at_s, 2) for (phase, at_s), (_, end_s) in pairwise(begun)}


def table(document: Mapping[str, Any]) -> str:
    """Medians by variant, in Markdown; nothing for what was not measured."""
    starts = document["starts"]
    names = list(dict.fromkeys(entry["name"] for entry in starts))
    phases = list(dict.fromkeys(phase for entry in starts for phase in durations(entry.get("phases_s", {}))))
    columns = [*phases, *LOGGED]
    head = ["start", "n", "ready s", "min to max", "first answer s", "cache", *columns]
    rows = []
    for name in names:
        done = [entry for entry in starts if entry["name"] == name and not entry.get("failed")]
        failed = sum(bool(entry.get("failed")) for entry in starts if entry["name"] == name)
        if not done:
            rows.append([name, f"0, {failed} failed", *[""] * (len(head) - 2)])
            continue
        ready = [entry["ready_s"] for entry in done]
        cells = [_median([durations(entry["phases_s"]).get(phase) for entry in done]) for phase in phases] + [
            _median([entry["logged"].get(column) for entry in done]) for column in LOGGED
        ]
        caches = sorted({entry["start_cache"] for entry in done})
        rows.append(
            [
                name,
                f"{len(done)}, {failed} failed" if failed else str(len(done)),
                _median(ready),
                f"{min(ready):.1f} to {max(ready):.1f}",
                _median([entry["answer_s"] for entry in done]),
                ", ".join(caches),
                *cells,
            ]
        )
    return markdown(head, rows)


def _median(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}" if known else ""
