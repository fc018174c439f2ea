"""The Service in front of the engine pods."""

from __future__ import annotations

from typing import Any

from dragoman_contract.http import ENGINE_PORT, ENGINE_PORT_NAME
from dragoman_operator.api.labels import metadata, selector
from dragoman_operator.api.v1alpha1 import TranslationDeployment


def service(td: TranslationDeployment) -> dict[str, Any]:
    """The Service; it routes to ready pods only."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(td, td.spec.service.annotations),
        "spec": {
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
    }
