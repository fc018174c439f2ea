"""What all arms of a run have in common."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CPU_KV_CACHE_BYTES = 256 * 1024**2


@dataclass(frozen=True)
class RunPlan:
    """Model, device and load of one run.

    Args:
        model: Directory of the checkpoint.
        template: The prompt's words, for every arm.
        memory_ratio: Share of the GPU's memory that each engine takes.
        max_model_len: Tokens of prompt and output together.
        start_s: Seconds that a server gets to start.
        kv_cache_bytes: KV cache of each engine, where several start at once: vLLM's own measurement of free memory
            fails when a neighbour's use changes meanwhile. None leaves it to vLLM.
    """

    model: Path
    template: str
    device: str
    memory_ratio: float
    max_model_len: int
    requests: Path | None
    start_s: float
    kv_cache_bytes: int | None = None

    def engine(self, **settings: Any) -> dict[str, Any]:
        """Engine arguments of one arm.

        Args:
            settings: What is special about it; on a CPU, memory and compilation are as the pod has them there.
        """
        common: dict[str, Any] = {"max_model_len": self.max_model_len}
        if self.device == "cpu":
            common |= {"enforce_eager": True, "kv_cache_memory_bytes": CPU_KV_CACHE_BYTES}
        else:
            common |= {"gpu_memory_utilization": self.memory_ratio}
            if self.kv_cache_bytes is not None:
                common |= {"kv_cache_memory_bytes": self.kv_cache_bytes}
        return common | settings

    def shown(self, command: Sequence[str]) -> list[str]:
        """A command line for the results, which name no path of the machine."""
        return ["python", *(part.replace(str(self.model), "MODEL") for part in command[1:])]

    @property
    def environment(self) -> dict[str, str]:
        """What every server's environment has beside our own; the same that a pod sets for itself."""
        common = {
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
            "TOKENIZERS_PARALLELISM": "false",
        }
        if self.device == "cpu":
            common |= {
                "VLLM_CPU_OMP_THREADS_BIND": "nobind",
                "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) - 1)),
                "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            }
        return common
