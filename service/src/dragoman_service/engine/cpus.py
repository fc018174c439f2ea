"""CPUs that this process may use."""

from __future__ import annotations

import os
from pathlib import Path

CGROUP_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
"""A container's CPU limit under cgroup v2: `<quota µs> <period µs>`, or `max <period µs>`."""


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
