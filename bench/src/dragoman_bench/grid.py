"""`dragoman bench grid`: every setting measured, to see what the tuner's few trials of them miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from dragoman_bench.catalogue import Arm, pod
from dragoman_tune.search import Policy, Setting, Stop, Trial, best, decide

SEQUENCES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
TOKENS = (2048, 4096, 8192, 16384)
"""What a full grid tries; the tuner doubles and halves between the same ends."""


@dataclass(frozen=True)
class Replay:
    """The tuner on a grid's figures in the place of its own measuring.

    Args:
        trials: It made so many.
        grid: Settings that the grid has.
        found: What it recommends; None where nothing keeps the SLO.
        best: The fastest of the grid that keeps the SLO; None where none does.
        why: It stopped.
    """

    trials: int
    grid: int
    found: Trial | None
    best: Trial | None
    why: str

    @property
    def ratio(self) -> float | None:
        """Throughput found, as a share of the fastest in the grid that keeps the SLO."""
        if self.found is None or self.best is None:
            return None
        return self.found.requests_per_s / self.best.requests_per_s


def grid_arms(sequences: Sequence[int], tokens: Sequence[int]) -> list[Arm]:
    """Our pod in every setting; a step has at least a token for each sequence."""
    return [_pod(Setting(most, step)) for most in sequences for step in tokens if step >= most]


def measured(document: Mapping[str, Any], kind: str, in_flight: int) -> dict[Setting, Trial]:
    """A grid's figures at one load, by setting; without those that failed.

    Args:
        document: The run's results.
        kind: Of the load, of `loads.LOADS`.
        in_flight: Requests at all times.
    """
    found = {}
    for entry in document["arms"]:
        for point in entry["points"]:
            if (point["load"], point["in_flight"]) == (kind, in_flight):
                setting = _setting(entry["arm"])
                found[setting] = Trial(setting, point["requests_per_s"], point["p95_s"])
    return found


def replay(grid: Mapping[Setting, Trial], policy: Policy) -> Replay:
    """What the tuner would have found, and after how many trials.

    Args:
        grid: Figures by setting; a missing one counts as failed.
        policy: The tuner's.
    """
    trials: list[Trial] = []
    while not isinstance(step := decide(trials, policy), Stop):
        trials.append(grid.get(step.setting) or Trial(step.setting, 0.0, None, "not in the grid"))
    # Of the grid, the fastest by however little is the best.
    fastest = best(list(grid.values()), replace(policy, same_ratio=0.0))
    return Replay(len(trials), len(grid), step.best, fastest, step.why)


def _pod(setting: Setting) -> Arm:
    sequences, tokens = setting.max_num_seqs, setting.max_num_batched_tokens
    return Arm(f"pod-{sequences}-{tokens}", f"{sequences} / {tokens}", pod(**asdict(setting)))


def _setting(arm: str) -> Setting:
    _, sequences, tokens = arm.split("-")
    return Setting(int(sequences), int(tokens))
