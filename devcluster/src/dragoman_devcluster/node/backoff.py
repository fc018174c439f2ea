"""How long a container that keeps ending waits for its next start."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Backoff:
    """The rule by which the delay grows.

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


def should_restart(policy: str, exit_code: int) -> bool:
    """Whether the pod's restartPolicy has a container that ended with this code start again."""
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)
