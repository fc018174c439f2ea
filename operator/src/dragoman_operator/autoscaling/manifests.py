"""Autoscalers of other makers that the operator sets up on the scale subresource: HPA and KEDA's ScaledObject.

Either reads absent metrics as an error, upon which it changes nothing, and never as idleness: HPA by itself, KEDA
by `ignoreNullValues: "false"` (its default takes an empty answer for 0). Each query gives one series.
"""

from __future__ import annotations

from typing import Any

from dragoman_contract.kubernetes import API_VERSION, KIND
from dragoman_operator.api.fields import seconds
from dragoman_operator.api.labels import metadata
from dragoman_operator.api.scaling import Autoscaling
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.decision.policy import SHORTEST_WINDOW_S
from dragoman_operator.autoscaling.status import policy_of
from dragoman_operator.observed.snapshot import HPA, SCALED_OBJECT, TRIGGER_AUTHENTICATION

HPA_LOAD = "dragoman_engine_requests"
HPA_KV_USAGE = "dragoman_engine_kv_cache_usage"
"""Names under which an adapter has to give the custom metrics API the pods' metrics; the chart has the rules for
prometheus-adapter (`files/prometheus-adapter.yaml`)."""

HELD_METRIC = "dragoman_scaling_requests"
"""The operator's own metric, which tells of held requests also where no engine runs."""

POLLING_S = 15
"""KEDA's default is 30; this is as often as HPA looks."""


def _target(td: TranslationDeployment) -> dict[str, str]:
    return {"apiVersion": API_VERSION, "kind": KIND, "name": td.name}


def _concurrency(td: TranslationDeployment) -> float:
    return policy_of(td.spec, 1.0).concurrency


def _scale_down(scaling: Autoscaling) -> dict[str, Any]:
    window = scaling.scale_down_window
    window_s = int(SHORTEST_WINDOW_S) if window is None else seconds(window)
    return {"scaleDown": {"stabilizationWindowSeconds": window_s}}


def horizontal_pod_autoscaler(td: TranslationDeployment) -> dict[str, Any] | None:
    """The HPA, in mode HPA; None otherwise.

    Metrics of kind Pods are averaged by HPA itself: a pod without one counts as at target when it shrinks and as
    idle when it grows.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details
    """
    scaling = td.spec.autoscaling
    if scaling is None or scaling.mode != "HPA":
        return None
    targets = ((HPA_LOAD, _concurrency(td)), (HPA_KV_USAGE, scaling.target_kv_cache_usage))
    return {
        "apiVersion": HPA.api_version,
        "kind": HPA.name,
        "metadata": metadata(td),
        "spec": {
            "scaleTargetRef": _target(td),
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": name},
                        "target": {"type": "AverageValue", "averageValue": f"{round(value * 1000)}m"},
                    },
                }
                for name, value in targets
            ],
            "behavior": _scale_down(scaling),
        },
    }


def trigger_authentication(td: TranslationDeployment) -> dict[str, Any] | None:
    """Where KEDA finds the Prometheus' token; None in other modes and where there is none."""
    scaling = td.spec.autoscaling
    if scaling is None or scaling.mode != "KEDA":
        return None
    token = scaling.prometheus.token_secret_ref if scaling.prometheus else None
    if token is None:
        return None
    return {
        "apiVersion": TRIGGER_AUTHENTICATION.api_version,
        "kind": TRIGGER_AUTHENTICATION.name,
        "metadata": metadata(td),
        "spec": {
            "secretTargetRef": [{"parameter": "bearerToken", "name": token.name, "key": token.key}],
        },
    }


def scaled_object(td: TranslationDeployment, prometheus_url: str) -> dict[str, Any] | None:
    """The ScaledObject, in mode KEDA; None otherwise, and without a Prometheus.

    Load and KV cache are means over the pods that are heard of, compared as `Value`: a pod that is not scraped
    counts as the others do. Where zero is allowed, what routers hold wakes the deployment.

    Args:
        td: What should run.
        prometheus_url: The operator's Prometheus, for objects that name none; empty where there is none.
    Source: https://keda.sh/docs/latest/scalers/prometheus/
    """
    scaling = td.spec.autoscaling
    if scaling is None or scaling.mode != "KEDA":
        return None
    named = scaling.prometheus
    url = (named.url if named else None) or prometheus_url
    if not url:
        return None
    ours = f'namespace="{td.namespace}",model_name="{td.name}"'
    load = " + ".join(
        f"sum by (pod) (vllm:num_requests_{state}{{{ours}}})" for state in ("running", "waiting")
    )
    usage = f'{{__name__=~"vllm:(kv|gpu)_cache_usage_perc",{ours}}}'
    own = f'deployment_namespace="{td.namespace}",deployment="{td.name}"'
    triggers = [
        ("Value", f"avg({load})", _concurrency(td), "0"),
        # Never by itself a reason to leave zero.
        ("Value", f"avg({usage})", scaling.target_kv_cache_usage, "1"),
    ]
    if scaling.min_replicas == 0:
        held = f'max({HELD_METRIC}{{state="held",{own}}})'
        triggers.append(("AverageValue", held, _concurrency(td), "0"))
    signed_in = {"authenticationRef": {"name": td.name}} if named and named.token_secret_ref else {}
    mode = {"authModes": "bearer"} if signed_in else {}
    return {
        "apiVersion": SCALED_OBJECT.api_version,
        "kind": SCALED_OBJECT.name,
        "metadata": metadata(td),
        "spec": {
            "scaleTargetRef": _target(td),
            "minReplicaCount": scaling.min_replicas,
            "maxReplicaCount": scaling.max_replicas,
            "pollingInterval": POLLING_S,
            "cooldownPeriod": scaling.idle_seconds,
            "advanced": {"horizontalPodAutoscalerConfig": {"behavior": _scale_down(scaling)}},
            "triggers": [
                {
                    "type": "prometheus",
                    "metricType": metric_type,
                    "metadata": {
                        "serverAddress": url,
                        "query": query,
                        "threshold": f"{threshold:g}",
                        "activationThreshold": activation,
                        "ignoreNullValues": "false",
                        **mode,
                    },
                    **signed_in,
                }
                for metric_type, query, threshold, activation in triggers
            ],
        },
    }
