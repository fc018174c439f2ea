"""The children beside the Deployment: one builder for each kind.

HPA and KEDA's ScaledObject scale through the scale subresource. Both treat missing metrics as an error and keep the
replicas: HPA always, KEDA with `ignoreNullValues: "false"` (by default it treats an empty result as 0). Each query
returns one series. Where no engine runs, metrics are not missing: the queries then return 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME
from dragoman_contract.kubernetes import (
    API_VERSION,
    KIND,
    LABEL_COMPONENT,
    LABEL_PART_OF,
    OPERATOR_COMPONENT,
    PART_OF,
)
from dragoman_kube.kinds import (
    DISRUPTION_BUDGET,
    HPA,
    NETWORK_POLICY,
    SCALED_OBJECT,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    TRIGGER_AUTHENTICATION,
)
from dragoman_operator.api.fields import LocalObjectReference, seconds
from dragoman_operator.api.labels import child, selector
from dragoman_operator.api.scaling import Autoscaling
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.autoscaling.inputs import policy_of
from dragoman_operator.metric_definitions import DEPLOYMENT_REPLICAS, SCALING_REQUESTS
from dragoman_operator.resources.pod import start_cache_secret


@dataclass(frozen=True)
class Defaults:
    """The operator's settings for fields that a spec leaves out. Prometheus may be empty.

    `namespace` is the operator's own.
    """

    cuda: str
    cpu: str
    prometheus_url: str = ""
    namespace: str = "default"
    prometheus_headers: tuple[tuple[str, str], ...] = ()
    image_pull_secrets: tuple[str, ...] = ()
    platform_users: bool = False
    """Whether the platform chooses user and groups of the pods."""

    def completed(self, td: TranslationDeployment) -> TranslationDeployment:
        """`td` with the settings that pods depend on, apart from the image, as if its spec had them."""
        spec, template = td.spec, td.spec.pod_template
        update: dict[str, Any] = {}
        if self.platform_users and template.security_context is None:
            update["pod_template"] = template.model_copy(update={"security_context": {}})
        if self.image_pull_secrets and not spec.image_pull_secrets:
            update["image_pull_secrets"] = tuple(
                LocalObjectReference(name=name) for name in self.image_pull_secrets
            )
        return replace(td, spec=spec.model_copy(update=update)) if update else td

    def image(self, td: TranslationDeployment) -> str:
        """The image for `td`."""
        return td.spec.image or getattr(self, td.spec.engine.device)


def service(td: TranslationDeployment) -> dict[str, Any]:
    """The Service; it routes to ready pods only."""
    return child(
        SERVICE,
        td,
        td.spec.service.annotations,
        spec={
            "type": td.spec.service.type,
            "selector": selector(td.name),
            "ports": [
                {
                    "name": ENGINE_PORT_NAME,
                    "port": ENGINE_PORT,
                    "targetPort": ENGINE_PORT_NAME,
                    "protocol": "TCP",
                    "appProtocol": "http",
                }
            ],
        },
    )


def disruption_budget(td: TranslationDeployment) -> dict[str, Any]:
    """One pod at a time may be evicted.

    `maxUnavailable` rather than `minAvailable`: a node with the only replica can still be drained. A pod that
    is not ready protects nothing and may always be evicted.

    Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb/
    """
    return child(
        DISRUPTION_BUDGET,
        td,
        spec={
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector(td.name)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    )


HTTPS_PORT = 443


def network_policy(td: TranslationDeployment, operator_namespace: str) -> dict[str, Any]:
    """Ingress on the http port; egress for downloads and traces, and to the pods of the same object, only.

    Without `spec.networkPolicy.from` every peer may connect, because clients and Prometheus are not known. With it, the
    operator may too, because it reads the pods' metrics. Kubelets reach the pods of their node regardless of policies,
    so probes need no rule. Without `spec.networkPolicy.to` every host may be reached on the ports of downloads and
    traces. DNS is allowed with any egress, to every host, because the cluster's servers are not known.

    Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
    """
    policy = td.spec.network_policy
    http = [{"protocol": "TCP", "port": ENGINE_PORT}]
    siblings = {"podSelector": {"matchLabels": selector(td.name)}}
    ingress: dict[str, Any] = {"ports": http}
    if policy.from_:
        operator = {
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": operator_namespace}},
            "podSelector": {"matchLabels": {LABEL_PART_OF: PART_OF, LABEL_COMPONENT: OPERATOR_COMPONENT}},
        }
        ingress["from"] = [*policy.from_, operator, siblings]
    ports = {HTTPS_PORT} if td.spec.model.is_remote else set()
    if collector := td.spec.tracing.port:
        ports.add(collector)
    hosts = {"to": list(policy.to)} if policy.to else {}
    egress: list[dict[str, Any]] = [
        {"ports": [{"protocol": "TCP", "port": port}], **hosts} for port in sorted(ports)
    ]
    if egress or policy.egress:
        names = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
        egress.insert(0, names)
    return child(
        NETWORK_POLICY,
        td,
        spec={
            "podSelector": {"matchLabels": selector(td.name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [ingress],
            "egress": [*egress, {"ports": http, "to": [siblings]}, *policy.egress],
        },
    )


def start_cache(td: TranslationDeployment) -> dict[str, Any]:
    """The Secret that pods need to take the start cache of a ready one, without its content.

    It belongs to the Service whose address it has, and is deleted with it: the operator needs no right to read, change
    or delete Secrets. See `with_address`.
    """
    manifest = child(SECRET, td, immutable=True, type="Opaque")
    del manifest["metadata"]["ownerReferences"]
    manifest["metadata"]["name"] = start_cache_secret(td.name)
    return manifest


def with_address(manifest: Mapping[str, Any], service: Mapping[str, Any], secret: str) -> dict[str, Any]:
    """The Secret of the start cache with its content and its owner.

    Args:
        manifest: As `start_cache` made it.
        service: The Service as stored. Pods get its address and no name: pods of many models may not resolve names.
        secret: Random.
    """
    address = str(service["spec"]["clusterIP"])
    host = f"[{address}]" if ":" in address else address
    owner = {"apiVersion": SERVICE.api_version, "kind": SERVICE.name, "name": service["metadata"]["name"]}
    references = [{**owner, "uid": service["metadata"]["uid"], "controller": True}]
    return {
        **manifest,
        "metadata": {**manifest["metadata"], "ownerReferences": references},
        "stringData": {"url": f"http://{host}:{ENGINE_PORT}", "secret": secret},
    }


def service_account(td: TranslationDeployment) -> dict[str, Any]:
    """The ServiceAccount; engine pods do not use the Kubernetes API, so they get no token."""
    return child(SERVICE_ACCOUNT, td, automountServiceAccountToken=False)


HPA_LOAD = "dragoman_engine_requests"
HPA_KV_USAGE = "dragoman_engine_kv_cache_usage"
"""Names of the pods' metrics in the custom metrics API; the chart has the rules for prometheus-adapter
(`files/prometheus-adapter.yaml`)."""

POLLING_S = 15
DEFAULT_WINDOW_S = 300
"""HPA's default."""

POLLING_FROM_ZERO_S = 5
"""KEDA's default is 30; 15 is HPA's sync period. KEDA alone scales from zero, and a request waits for its next poll."""


def _target(td: TranslationDeployment) -> dict[str, str]:
    return {"apiVersion": API_VERSION, "kind": KIND, "name": td.name}


def _scale_down(scaling: Autoscaling) -> dict[str, Any]:
    window = scaling.scale_down_stabilization_window
    window_s = DEFAULT_WINDOW_S if window is None else seconds(window)
    return {"scaleDown": {"stabilizationWindowSeconds": window_s}}


def horizontal_pod_autoscaler(td: TranslationDeployment) -> dict[str, Any] | None:
    """The HPA, in mode HPA; None otherwise.

    HPA averages metrics of kind Pods itself: a pod without one counts as at target when scaling down, and as idle
    when scaling up.

    Source: https://kubernetes.io/docs/tasks/run-application/horizontal-pod-autoscale/#algorithm-details
    """
    scaling = td.spec.autoscaling
    if scaling is None or scaling.mode != "HPA":
        return None
    targets = ((HPA_LOAD, policy_of(td.spec).concurrency), (HPA_KV_USAGE, scaling.target_kv_cache_usage))
    return child(
        HPA,
        td,
        spec={
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
    )


def trigger_authentication(td: TranslationDeployment) -> dict[str, Any] | None:
    """The TriggerAuthentication with the token of Prometheus; None in other modes, and without a token."""
    scaling = td.spec.autoscaling
    if scaling is None or scaling.mode != "KEDA":
        return None
    token = scaling.prometheus.token_secret_ref if scaling.prometheus else None
    if token is None:
        return None
    return child(
        TRIGGER_AUTHENTICATION,
        td,
        spec={
            "secretTargetRef": [{"parameter": "bearerToken", "name": token.name, "key": token.key}],
        },
    )


def scaled_object(
    td: TranslationDeployment, prometheus_url: str, headers: Sequence[tuple[str, str]] = ()
) -> dict[str, Any] | None:
    """The ScaledObject, in mode KEDA; None otherwise, and without a Prometheus.

    Load and KV cache usage are means over the scraped pods, compared as `Value`: a pod that is not scraped counts
    like the others. Both are 0 at zero replicas and while the first one starts. If zero is allowed, requests queued at
    routers scale the deployment from zero.

    `prometheus_url` is the operator's own, for an object that names none, and `headers` are those of requests to it.
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
    # A pod that several jobs scrape has several series for each of its engines.
    load = " + ".join(
        f"sum by (pod) (max by (pod, engine) (vllm:num_requests_{state}{{{ours}}}))"
        for state in ("running", "waiting")
    )
    usage = f"max by (pod, engine) (vllm:kv_cache_usage_perc{{{ours}}})"
    own = f'deployment_namespace="{td.namespace}",deployment="{td.name}"'
    desired, ready = (
        f'max({DEPLOYMENT_REPLICAS.name}{{state="{state}",{own}}})' for state in ("desired", "ready")
    )
    # With more than one replica and none ready, the load is not known: 0 would scale down.
    idle = f"({ready} == 0 and {desired} <= 1)"
    concurrency = policy_of(td.spec).concurrency
    triggers = [
        ("Value", f"avg({load}) or {idle}", concurrency, "0"),
        # Does not activate the deployment by itself.
        ("Value", f"avg({usage}) or {idle}", scaling.target_kv_cache_usage, "1"),
    ]
    if scaling.min_replicas == 0:
        queued = f'max({SCALING_REQUESTS.name}{{state="queued_at_routers",{own}}})'
        triggers.append(("AverageValue", queued, concurrency, "0"))
    signed_in = {"authenticationRef": {"name": td.name}} if named and named.token_secret_ref else {}
    mode = {"authModes": "bearer"} if signed_in else {}
    if headers and not (named and named.url):
        mode["customHeaders"] = ",".join(f"{name}={value}" for name, value in headers)
    return child(
        SCALED_OBJECT,
        td,
        spec={
            "scaleTargetRef": _target(td),
            "minReplicaCount": scaling.min_replicas,
            "maxReplicaCount": scaling.max_replicas,
            "pollingInterval": POLLING_S if scaling.min_replicas else POLLING_FROM_ZERO_S,
            "cooldownPeriod": scaling.idle_seconds,
            # Without it KEDA scales an object that it has not yet seen active to zero at its first poll.
            "initialCooldownPeriod": scaling.idle_seconds,
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
    )
