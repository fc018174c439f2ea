"""The engines of the chaos run: what is in the object's spec, and how much work they did."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACE = {"first_token_s": 0.02, "token_s": 0.002, "slowdown_ratio": 0.02, "load_s": 0.5}
"""A short sentence takes about 50 ms, as on a GPU that is not full."""


@dataclass(frozen=True)
class Engines:
    """One kind of engine.

    Args:
        name: `scripted` or `vllm`.
        spec: Fields of the object's spec that depend on it.
        step_s: Maximum time for one change of the cluster.
        journal: File in which scripted engines write their generations.
    """

    name: str
    spec: Mapping[str, Any]
    step_s: float
    journal: Path | None = None


def scripted(journal: Path) -> Engines:
    """Engines without a model."""
    return Engines(
        "scripted",
        {
            "languages": [{"source": "en", "targets": ["de", "fr"]}],
            "engine": {
                "device": "cpu",
                "maxNumSeqs": 16,
                "extraArgs": {**PACE, "journal": str(journal)},
            },
            "rollout": {"drainTimeout": "10s"},
            "podTemplate": {"env": [{"name": "DRAGOMAN_ENGINE", "value": "scripted"}]},
        },
        step_s=240.0,
        journal=journal,
    )


def vllm() -> Engines:
    """vLLM on the CPU, with the demo model."""
    return Engines(
        "vllm",
        {
            "languages": [
                {"source": "en", "targets": ["de", "fr", "ne"]},
                {"source": "fr", "targets": ["en"]},
                {"source": "de", "targets": ["en"]},
            ],
            "engine": {
                "device": "cpu",
                "maxNumSeqs": 16,
                "maxModelLen": 1024,
                "maxNumBatchedTokens": 2048,
                "kvCacheMemory": "256Mi",
            },
            "rollout": {"drainTimeout": "60s"},
        },
        step_s=900.0,
    )


def work_of(journal: Path, repeated: Callable[[str], bool]) -> dict[str, int]:
    """How much scripted engines worked on the requests.

    Args:
        journal: What they wrote: for each generation a line of process id, tab, segment.
        repeated: Whether a pod generates a text twice by itself, because a guard finds fault with the first answer.

    Returns:
        `texts`; `generations`; `again`, texts that pods began more than once; `again_elsewhere`, those of them that
        more than one pod began; `most`, how often the most frequent one was begun.
    """
    pods: dict[str, list[str]] = defaultdict(list)
    for line in journal.read_text().splitlines():
        pod, _, text = line.partition("\t")
        pods[text].append(pod)
    twice = {text: len(by) for text, by in pods.items() if len(by) > 1}
    begun = {text: math.ceil(count / 2) if repeated(text) else count for text, count in twice.items()}
    return {
        "texts": len(pods),
        "generations": sum(map(len, pods.values())),
        "again": sum(count > 1 for count in begun.values()),
        "again_elsewhere": sum(len(set(by)) > 1 for by in pods.values()),
        "most": max(begun.values(), default=min(1, len(pods))),
    }
