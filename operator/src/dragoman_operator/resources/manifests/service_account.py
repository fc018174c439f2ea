"""The ServiceAccount of the engine pods, without a token."""

from __future__ import annotations

from typing import Any

from dragoman_operator.api.labels import metadata
from dragoman_operator.api.v1alpha1 import TranslationDeployment


def service_account(td: TranslationDeployment) -> dict[str, Any]:
    """The ServiceAccount; engine pods do not use the Kubernetes API, so they get no token."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(td),
        "automountServiceAccountToken": False,
    }
