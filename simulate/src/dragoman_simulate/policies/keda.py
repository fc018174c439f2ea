"""KEDA with the trigger that vLLM's production-stack ships: five waiting requests per replica.

KEDA polls (30 s) only to wake a workload from zero and to send it back there (300 s after the trigger was last
active); in between an HPA queries KEDA for the metric at its own 15 s sync.

Sources:
    https://keda.sh/docs/latest/reference/scaledobject-spec/ (pollingInterval 30, cooldownPeriod 300)
    https://keda.sh/docs/latest/scalers/prometheus/ (ignoreNullValues is true: an empty result is 0)
    https://github.com/vllm-project/production-stack/blob/main/helm/templates/scaledobject-vllm.yaml
"""

from __future__ import annotations

from dragoman_simulate.policies.hpa import SYNC_S, Behavior, HpaController, external_metric_replicas
from dragoman_simulate.view import ScalingLimits, View

POLL_S = 30
COOLDOWN_S = 300
WAITING_PER_REPLICA = 5


class Keda:
    """A ScaledObject on `vllm:num_requests_waiting`, with KEDA's defaults for everything else.

    It is also shown what the router holds, without which it could never wake: the metric of a workload at zero
    does not exist (production-stack issue 1003).
    """

    tick_s = SYNC_S

    def __init__(self, limits: ScalingLimits, waiting_per_replica: float = WAITING_PER_REPLICA) -> None:
        self._limits = limits
        self._target = waiting_per_replica
        self._controller = HpaController(limits, Behavior())
        self._active_s = 0.0

    def decide(self, view: View) -> int:
        """See `FleetPolicy.decide`. A metric that is gone reads as zero, as KEDA's default has it."""
        waiting = view.queued + (0.0 if view.metrics is None else view.metrics.waiting)
        if waiting > 0:
            self._active_s = view.now_s
        if view.desired == 0:
            polled = view.now_s % POLL_S < SYNC_S
            return max(1, self._limits.minimum) if waiting > 0 and polled else 0
        if self._limits.minimum == 0 and view.now_s - self._active_s >= COOLDOWN_S:
            return 0
        wanted = external_metric_replicas(waiting, self._target, view.desired)
        return self._controller.settle(view.desired, wanted, view.now_s)
