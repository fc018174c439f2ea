"""What probe results mean: counting towards the thresholds."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dragoman_kube.objects import Manifest


@dataclass(frozen=True)
class ProbeTiming:
    """The timing of a probe; the defaults are Kubernetes'.

    Source: https://kubernetes.io/docs/tasks/configure-pod-container/configure-liveness-readiness-startup-probes/
    """

    initial_delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3

    @classmethod
    def of(cls, probe: Manifest) -> ProbeTiming:
        """The timing of a probe in a pod's spec; fields that are absent or 0 have their default."""
        default = cls()
        return cls(
            initial_delay_s=float(probe.get("initialDelaySeconds") or 0),
            period_s=float(probe.get("periodSeconds") or default.period_s),
            timeout_s=float(probe.get("timeoutSeconds") or default.timeout_s),
            success_threshold=int(probe.get("successThreshold") or default.success_threshold),
            failure_threshold=int(probe.get("failureThreshold") or default.failure_threshold),
        )


@dataclass(frozen=True)
class Streak:
    """How often in a row a probe has had its latest result.

    Args:
        succeeded: The latest result.
        length: How often in a row; 0 before the first.
    """

    succeeded: bool = False
    length: int = 0

    def then(self, succeeded: bool) -> Streak:
        """The streak after one more result."""
        if self.length and succeeded == self.succeeded:
            return replace(self, length=self.length + 1)
        return Streak(succeeded, 1)

    def verdict(self, timing: ProbeTiming) -> bool | None:
        """True or False once the threshold is reached; None while the former verdict stands."""
        threshold = timing.success_threshold if self.succeeded else timing.failure_threshold
        return self.succeeded if self.length >= threshold else None
