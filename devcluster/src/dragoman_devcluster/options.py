"""What can be chosen about a local cluster."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path

DEFAULT_DIR = Path(".dragoman")

NODE_NAME = "local"


def find_checkout() -> Path:
    """The checkout that stands for /opt/dragoman: the nearest parent directory with ``examples``.

    Searched above this package first, then above the working directory; default: the working directory.
    """
    for start in (Path(__file__).resolve(), Path.cwd() / "here"):
        for parent in start.parents:
            if (parent / "examples").is_dir():
                return parent
    return Path.cwd()


def count_gpus() -> int:
    """How many NVIDIA GPUs this machine has, by nvidia-smi; 0 without it."""
    try:
        listed = subprocess.run(
            ["nvidia-smi", "--query-gpu=index", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    return len(listed.stdout.split())


@dataclass(frozen=True)
class Backoff:
    """How long a container that keeps ending waits for its next start.

    The first restart is immediate; then the delay starts at `initial_s` and doubles up to `maximum_s`. A
    container that ran for `reset_s` starts afresh.

    Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy
    """

    initial_s: float = 10.0
    maximum_s: float = 300.0
    reset_s: float = 600.0

    def next_delay_s(self, last_delay_s: float | None, ran_s: float) -> float:
        """Seconds before the next start; `last_delay_s` preceded the run that has just ended, None was the first."""
        if last_delay_s is None or ran_s >= self.reset_s:
            return 0.0
        return min(self.maximum_s, last_delay_s * 2) if last_delay_s else self.initial_s


@dataclass(frozen=True)
class ClusterOptions:
    """A local cluster's settings.

    Args:
        dir: State directory; made if missing.
        api: ``embedded``, ``kube-apiserver``, or ``auto`` for the latter where its binaries are found.
        port: Port of the API on 127.0.0.1; 0 for a free one.
        backoff: How long a crashing container waits, and an API server that keeps ending.
        gpus: How many GPUs the node offers; None counts them.
        checkout: Directory that stands for /opt/dragoman in containers.
        stop_grace_s: The most that a container gets to end when the cluster stops.
        api_only: Whether to run the API server alone: no controllers, no node, no pods.
        preload: Module that is imported once, for the containers whose command is ``dragoman``: they are forked
            from the process that imported it. Default: each has an interpreter of its own.
        audit_policy: Policy file of kube-apiserver's audit log, which is ``logs/audit.log`` in `dir`; default: no log.
    """

    dir: Path = DEFAULT_DIR
    api: str = "auto"
    port: int = 0
    backoff: Backoff = field(default_factory=Backoff)
    gpus: int | None = None
    checkout: Path = field(default_factory=find_checkout)
    stop_grace_s: float = 10.0
    api_only: bool = False
    audit_policy: Path | None = None
    preload: str | None = None

    def flags(self) -> list[str]:
        """The equivalent options of ``dragoman devcluster up``."""
        return [
            *("--dir", str(self.dir)),
            *("--api", self.api),
            *("--port", str(self.port)),
            *("--backoff", f"{self.backoff.initial_s:g},{self.backoff.maximum_s:g}"),
            *(() if self.gpus is None else ("--gpus", str(self.gpus))),
            *("--stop-grace", f"{self.stop_grace_s:g}"),
            *(("--api-only",) if self.api_only else ()),
            *(() if self.preload is None else ("--preload", self.preload)),
            *(() if self.audit_policy is None else ("--audit-policy", str(self.audit_policy.resolve()))),
        ]
