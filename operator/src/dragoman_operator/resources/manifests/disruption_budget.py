"""The PodDisruptionBudget of the engine pods."""

from __future__ import annotations

from typing import Any

from dragoman_operator.api.labels import metadata, selector
from dragoman_operator.api.v1alpha1 import TranslationDeployment


def disruption_budget(td: TranslationDeployment) -> dict[str, Any]:
    """One pod at a time may be evicted.

    `maxUnavailable` rather than `minAvailable`: a node with the only replica can still be drained. A pod that
    is not ready protects nothing and may always be evicted.

    Source: https://kubernetes.io/docs/tasks/run-application/configure-pdb/
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(td),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector(td.name)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }
