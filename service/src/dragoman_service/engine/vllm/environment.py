"""The environment that vLLM is started in: caches, processes, threads, and no telemetry."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from dragoman_service.settings import Settings

CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU limit under cgroup v2: `<quota µs> <period µs>`, or `max <period µs>`."""


def environment(
    settings: Settings, report_config: Path, cpus: int, given: Mapping[str, str]
) -> dict[str, str]:
    """What to add to the environment before vLLM is imported; nothing that is already set there.

    Args:
        settings: The pod's.
        report_config: Logging configuration for vLLM's processes.
        cpus: CPUs that this pod may use.
        given: The environment as it is.
    """
    wanted = {
        # No usage report leaves the pod.
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # A fork of a process that has threads and an event loop can deadlock.
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",
        "VLLM_LOGGING_CONFIG_PATH": str(report_config),
        "TOKENIZERS_PARALLELISM": "false",
    }
    if settings.traces_endpoint is not None:
        # As the pod's own spans go; vLLM's default is gRPC.
        wanted["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
        wanted["OTEL_SERVICE_NAME"] = settings.name
        # A collector that is gone shall not hold up the end of the pod.
        wanted["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"] = "5"
    if settings.cache_dir is not None:
        wanted["HF_HOME"] = str(settings.cache_dir / "huggingface")
        wanted["VLLM_CACHE_ROOT"] = str(settings.cache_dir / "vllm")
        wanted["VLLM_CONFIG_ROOT"] = str(settings.cache_dir / "vllm" / "config")
        wanted["TORCHINDUCTOR_CACHE_DIR"] = str(settings.cache_dir / "vllm" / "inductor")
        wanted["TRITON_CACHE_DIR"] = str(settings.cache_dir / "vllm" / "triton")
        wanted["FLASHINFER_WORKSPACE_BASE"] = str(settings.cache_dir / "vllm" / "flashinfer")
        # A container's user may have no name and no home; torch asks for the one, caches go to the other.
        wanted["USER"] = "dragoman"
        wanted["XDG_CACHE_HOME"] = str(settings.cache_dir)
    if settings.device == "cpu":
        # By itself, vLLM binds every pod of a machine to the same first cores.
        wanted["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        # One core is left to HTTP and the scheduler, as vLLM leaves one.
        wanted["OMP_NUM_THREADS"] = str(max(1, cpus - 1))
        if (settings.tensor_parallel_size or 1) == 1 and not _chooses_executor(settings):
            # Lets the engine's process run the model itself: one process, and one import of vLLM, less.
            wanted["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    return {name: value for name, value in wanted.items() if name not in given}


def usable_cpus() -> int:
    """CPUs that this process may use: those it is bound to, within its container's limit."""
    limit = CGROUP_CPU_MAX.read_text(encoding="ascii") if CGROUP_CPU_MAX.exists() else ""
    return min(len(os.sched_getaffinity(0)), limited_cpus(limit))


def limited_cpus(cpu_max: str) -> int:
    """Whole CPUs of a cgroup's `cpu.max`, at least 1; a large number where there is no limit."""
    quota, _, period = cpu_max.strip().partition(" ")
    if not quota.isdigit() or not period.isdigit():
        return 1 << 16
    return max(1, int(quota) // int(period))


def _chooses_executor(settings: Settings) -> bool:
    return "distributed_executor_backend" in settings.engine_args
