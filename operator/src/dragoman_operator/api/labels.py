"""Names, labels and owner references of all children."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman_contract.kubernetes import (
    API_VERSION,
    ENGINE_COMPONENT,
    KIND,
    LABEL_COMPONENT,
    LABEL_DEPLOYMENT,
    LABEL_NAME,
    LABEL_PART_OF,
    PART_OF,
)
from dragoman_kube.kinds import Kind
from dragoman_operator.api.v1alpha1 import TranslationDeployment

MANAGED_BY = "dragoman-operator"

ENGINE_CONTAINER = "engine"
"""Name of the container in an engine pod."""
FETCH_CONTAINER = "fetch"
"""Name of the init container that downloads the model."""


def selector(name: str) -> dict[str, str]:
    """Labels that select the pods of one TranslationDeployment.

    They cannot change: a Deployment's selector is immutable.
    """
    return {LABEL_DEPLOYMENT: name, LABEL_COMPONENT: ENGINE_COMPONENT}


def labels(td: TranslationDeployment) -> dict[str, str]:
    """Labels of every child and pod.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/common-labels/
    """
    return {
        **selector(td.name),
        LABEL_NAME: "dragoman-engine",
        "app.kubernetes.io/instance": td.name,
        LABEL_PART_OF: PART_OF,
        "app.kubernetes.io/managed-by": MANAGED_BY,
    }


def child(
    kind: Kind, td: TranslationDeployment, annotations: Mapping[str, str] | None = None, **fields: Any
) -> dict[str, Any]:
    """A child with these fields: it has its owner's name, and is deleted with it."""
    owner = {"apiVersion": API_VERSION, "kind": KIND, "name": td.name, "uid": td.uid}
    metadata: dict[str, Any] = {
        "name": td.name,
        "namespace": td.namespace,
        "labels": labels(td),
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **fields}
