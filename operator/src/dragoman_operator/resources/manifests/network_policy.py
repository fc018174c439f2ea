"""The NetworkPolicy of the engine pods."""

from __future__ import annotations

from typing import Any

from dragoman_contract.http import ENGINE_PORT
from dragoman_operator.api.labels import metadata, selector
from dragoman_operator.api.v1alpha1 import TranslationDeployment
from dragoman_operator.resources.model_source import is_remote

HTTPS_PORT = 443


def network_policy(td: TranslationDeployment) -> dict[str, Any]:
    """Ingress on the http port; egress for downloads and traces only.

    Without `spec.networkPolicy.from` every peer may come in: who the clients and the Prometheus are is not
    known here. Kubelets reach their own node's pods whatever a policy says, so probes need no rule.

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
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(td),
        "spec": {
            "podSelector": {"matchLabels": selector(td.name)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [ingress],
            "egress": [*egress, *policy.egress],
        },
    }
