"""CPUs and GPUs that a pod may use, and metrics of the GPUs, by NVML.

Source: https://docs.nvidia.com/deploy/nvml-api/
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from dragoman_service.metric_definitions import GPU_MEMORY_BYTES, GPU_MEMORY_USED_BYTES, GPU_UTILIZATION_RATIO

log = logging.getLogger(__name__)


def gpus(environ: Mapping[str, str] = os.environ) -> GPUs | None:
    """The GPUs that this process may use, by `CUDA_VISIBLE_DEVICES`; None without driver, GPU or NVML."""
    try:
        nvml = importlib.import_module("pynvml")
        nvml.nvmlInit()
    except Exception as error:
        # NVML's absence shows in many ways.
        log.debug("no NVML: %s", error)
        return None
    handles = visible(nvml, environ.get("CUDA_VISIBLE_DEVICES"))
    if handles:
        return GPUs(nvml, handles)
    nvml.nvmlShutdown()
    return None


def visible(nvml: Any, devices: str | None) -> dict[str, Any]:
    """NVML's handles of GPUs, by the label that they get.

    Args:
        nvml: The module, started.
        devices: `CUDA_VISIBLE_DEVICES`: indices or UUIDs; None is all. A name that NVML does not know ends the
            list, as it does for CUDA.
    """
    if devices is None:
        return {str(at): nvml.nvmlDeviceGetHandleByIndex(at) for at in range(nvml.nvmlDeviceGetCount())}
    found: dict[str, Any] = {}
    for name in filter(None, map(str.strip, devices.split(","))):
        try:
            if name.isdecimal():
                found[name] = nvml.nvmlDeviceGetHandleByIndex(int(name))
            else:
                found[name] = nvml.nvmlDeviceGetHandleByUUID(name)
        except nvml.NVMLError:
            break
    return found


class GPUs:
    """Reads utilisation and memory of NVML's handles by label."""

    def __init__(self, nvml: Any, handles: Mapping[str, Any]) -> None:
        self._nvml = nvml
        self._handles = handles

    def uuids(self) -> list[str]:
        """UUID of each GPU."""
        return [str(self._nvml.nvmlDeviceGetUUID(handle)) for handle in self._handles.values()]

    def facts(self) -> dict[str, Any]:
        """Driver, and name, memory and compute capability of each GPU."""
        nvml = self._nvml
        return {
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
            "gpus": [
                (
                    str(nvml.nvmlDeviceGetName(handle)),
                    int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
                    list(nvml.nvmlDeviceGetCudaComputeCapability(handle)),
                )
                for handle in self._handles.values()
            ],
        }

    def close(self) -> None:
        """Close NVML where nothing else of this process has it open."""
        self._nvml.nvmlShutdown()

    def metrics(self) -> Iterable[Metric]:
        """One sample for each GPU; a GPU whose driver fails has none."""
        busy, used, total = (
            GaugeMetricFamily(metric.name, metric.help, labels=metric.labels)
            for metric in (GPU_UTILIZATION_RATIO, GPU_MEMORY_USED_BYTES, GPU_MEMORY_BYTES)
        )
        for label, handle in self._handles.items():
            try:
                memory = self._nvml.nvmlDeviceGetMemoryInfo(handle)
                used.add_metric([label], memory.used)
                total.add_metric([label], memory.total)
                busy.add_metric([label], self._nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)
            except self._nvml.NVMLError as error:
                # A GPU that is partitioned (MIG) has memory and no utilisation.
                log.debug("GPU %s does not answer: %s", label, error)
        return [busy, used, total]


class GPUMetrics(Collector):
    """Collects metrics of the GPUs at each scrape, once NVML may be opened.

    A fork of this process would share what is open: that of vLLM's engine opens NVML itself.

    Args:
        may_open: Whether the engine process has been forked.
    """

    def __init__(self, may_open: Callable[[], bool], find: Callable[[], GPUs | None] = gpus) -> None:
        self._may_open = may_open
        self._find = cache(find)

    def collect(self) -> Iterable[Metric]:
        """Nothing without GPUs."""
        found = self._find() if self._may_open() else None
        return [] if found is None else found.metrics()


def gpu_facts() -> dict[str, Any] | None:
    """Properties of the GPUs on which compiled code and a memory profile depend; None if not known."""
    found = gpus()
    if found is None:
        return None
    with closing(found):
        return found.facts()


def gpu_uuids() -> list[str]:
    """UUIDs of the GPUs that this process may use."""
    found = gpus()
    if found is None:
        return []
    with closing(found):
        return found.uuids()


CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU limit under cgroup v2: `<quota µs> <period µs>`, or `max <period µs>`."""


def usable_cpus() -> int:
    """CPUs that this process may use: those it is bound to, within its container's limit."""
    limit = CGROUP_CPU_MAX.read_text(encoding="ascii") if CGROUP_CPU_MAX.exists() else ""
    return min(len(os.sched_getaffinity(0)), limited_cpus(limit))


def limited_cpus(cpu_max: str) -> int:
    """The CPU limit of a cgroup (`cpu.max`) in whole CPUs, at least 1; a large number without a limit."""
    quota, _, period = cpu_max.strip().partition(" ")
    if not quota.isdigit() or not period.isdigit():
        return 1 << 16
    return max(1, int(quota) // int(period))
