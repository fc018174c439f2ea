"""The children beside the pods and autoscalers: one builder for each kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME
from dragoman_kube.kinds import DEPLOYMENT, DISRUPTION_BUDGET, NETWORK_POLICY, SERVICE, SERVICE_ACCOUNT
from dragoman_operator.api.labels import child, selector
from dragoman_operator.api.pods import PROGRESS_MARGIN_S
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.resources.pod import START_PERIOD_S, is_remote, pod_template, start_attempts

PAUSE_S = 86_400
"""minReadySeconds of a rollout that pauses after its first pod, which serves but does not count as available. Longer
than any comparison, so that the rollout does not continue without evaluation while no operator runs."""


@dataclass(frozen=True)
class Images:
    """Default engine images."""

    cuda: str
    cpu: str

    def of(self, td: TranslationDeployment) -> str:
        """The image for `td`."""
        return td.spec.image or getattr(self, td.spec.engine.device)


def deployment(
    td: TranslationDeployment,
    images: Images,
    replicas: int,
    strategy: Mapping[str, object],
    template: Mapping[str, Any] | None = None,
    *,
    paused_after_first_pod: bool = False,
) -> dict[str, Any]:
    """The Deployment.

    `template` is that of a former version, if it is kept.
    """
    hold_s = PAUSE_S if paused_after_first_pod else 0
    return child(
        DEPLOYMENT,
        td,
        spec={
            "replicas": replicas,
            "selector": {"matchLabels": selector(td.name)},
            "strategy": dict(strategy),
            **({"minReadySeconds": hold_s} if hold_s else {}),
            "progressDeadlineSeconds": start_attempts(td) * START_PERIOD_S + PROGRESS_MARGIN_S + hold_s,
            "revisionHistoryLimit": 3,
            "template": dict(template or pod_template(td, images.of(td))),
        },
    )


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


def network_policy(td: TranslationDeployment) -> dict[str, Any]:
    """Ingress on the http port; egress for downloads and traces only.

    Without `spec.networkPolicy.from` every peer may connect, because clients and Prometheus are not known. Kubelets
    reach the pods of their node regardless of policies, so probes need no rule.

    Source: https://kubernetes.io/docs/concepts/services-networking/network-policies/
    """
    policy = td.spec.network_policy
    ingress: dict[str, Any] = {"ports": [{"protocol": "TCP", "port": ENGINE_PORT}]}
    if policy.from_:
        ingress["from"] = list(policy.from_)
    ports = {HTTPS_PORT} if is_remote(td.spec.model.uri) else set()
    if collector := td.spec.tracing.port:
        ports.add(collector)
    egress: list[dict[str, Any]] = [{"ports": [{"protocol": "TCP", "port": port}]} for port in sorted(ports)]
    if egress:
        names = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
        egress.insert(0, names)
    return child(
        NETWORK_POLICY,
        td,
        spec={
            "podSelector": {"matchLabels": selector(td.name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [ingress],
            "egress": [*egress, *policy.egress],
        },
    )


def service_account(td: TranslationDeployment) -> dict[str, Any]:
    """The ServiceAccount; engine pods do not use the Kubernetes API, so they get no token."""
    return child(SERVICE_ACCOUNT, td, automountServiceAccountToken=False)
