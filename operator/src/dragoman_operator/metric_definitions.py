"""The metrics that the operator exports.

Those of TranslationDeployments have their namespace and name as labels, which are not listed.
"""

from __future__ import annotations

from dragoman_contract.metrics import Section

_deployments = Section("TranslationDeployments")

SCALING_REPLICAS = _deployments.gauge(
    "dragoman_scaling_replicas",
    "Replicas at the last decision. `state`: `desired`, `ready`, `not_reporting` (ready, but without metrics).",
    "state",
)
SCALING_REQUESTS = _deployments.gauge(
    "dragoman_scaling_requests",
    "Load. `state`: `running` and `waiting` (generations in engines), `queued_at_routers` and "
    "`in_flight_at_routers` (requests).",
    "state",
)
SCALING_REQUIRED_REPLICAS = _deployments.gauge(
    "dragoman_scaling_required_replicas",
    "Required replicas, not rounded. `signal`: `load`, `kv_cache` (KV cache usage).",
    "signal",
)
SCALING_RULE = _deployments.gauge(
    "dragoman_scaling_rule",
    "1 for the [rule](../explanation/scaling.md#the-rules) of the last decision.",
    "rule",
)
SCALING_METRICS_AVAILABLE = _deployments.gauge(
    "dragoman_scaling_metrics_available", "0 while metrics for decisions are missing."
)
SCALING_CHANGES = _deployments.counter(
    "dragoman_scaling_changes_total",
    "Changes of the number of replicas. `direction`: `up`, `down`.",
    "direction",
    "rule",
)
DEPLOYMENT_CONDITION = _deployments.gauge(
    "dragoman_deployment_condition",
    "1 for the current status and reason of each [condition](../how-to/troubleshooting.md).",
    "type",
    "status",
    "reason",
)
DEPLOYMENT_REPLICAS = _deployments.gauge(
    "dragoman_deployment_replicas",
    "`status.desiredReplicas` and `status.readyReplicas`, in all modes. `state`: `desired`, `ready`.",
    "state",
)
DEPLOYMENT_GPUS = _deployments.gauge(
    "dragoman_deployment_gpus", "GPUs, or MIG devices, of pods that are bound to a node and have not ended."
)

_operator = Section("The operator itself")

LEADER = _operator.gauge("dragoman_operator_leader", "1 if this pod is the leader.")
RECONCILES = _operator.counter(
    "dragoman_operator_reconciles_total",
    "Reconciliations. `result`: `ok`, or the type of the error.",
    "result",
)
RECONCILE_DURATION_SECONDS = _operator.histogram(
    "dragoman_operator_reconcile_duration_seconds", "Duration of a reconciliation."
)
WORKQUEUE_DEPTH = _operator.gauge(
    "dragoman_operator_workqueue_depth", "TranslationDeployments that wait to be reconciled."
)
FAILURES = _operator.counter(
    "dragoman_operator_failures_total",
    "Unexpected errors in the evaluation of a TranslationDeployment. `part`: `autoscaler`, or `tuner` (it "
    "[recommends `maxNumSeqs`](../how-to/tuning.md#in-running-pods)).",
    "part",
)
SCALING_EVALUATION_DURATION_SECONDS = _operator.gauge(
    "dragoman_scaling_evaluation_duration_seconds",
    "Duration of the last evaluation of all TranslationDeployments by autoscaler and tuner.",
)
