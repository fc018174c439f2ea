"""Ownership of objects, by controller references: any client can set labels.

TranslationDeployment → Deployment → ReplicaSet → pod.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from dragoman_kube.kinds import DEPLOYMENT, REPLICA_SET, Kind
from dragoman_operator.observed.drift import APPLIED
from dragoman_operator.observed.snapshot import Manifest


def controller(found: Manifest) -> Mapping[str, Any]:
    """The controller reference; empty without one.

    Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/owners-dependents/
    """
    owners = (found.get("metadata") or {}).get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def is_child(found: Manifest, uid: str) -> bool:
    """Whether a child is owned by the TranslationDeployment with this uid.

    One without a controller is, if it has the annotation `APPLIED`: the reference was removed and is restored.
    """
    owner = controller(found)
    if not owner:
        return APPLIED in (found["metadata"].get("annotations") or {})
    return bool(owner.get("uid") == uid)


def own_replica_sets(
    deployment: Manifest | None, replica_sets: Iterable[Manifest], uid: str
) -> list[Manifest]:
    """The ReplicaSets of the operator's Deployment.

    Args:
        deployment: The Deployment of the object's name, regardless of its owner; None if absent.
        replica_sets: Any.
        uid: Of the TranslationDeployment.
    """
    if deployment is None or not is_child(deployment, uid):
        return []
    return _controlled(replica_sets, DEPLOYMENT, {deployment["metadata"]["uid"]})


def own_pods(pods: Iterable[Manifest], replica_sets: Container[str]) -> list[Manifest]:
    """The pods of the operator's ReplicaSets.

    Args:
        pods: Any.
        replica_sets: The uids of these ReplicaSets.
    """
    return _controlled(pods, REPLICA_SET, replica_sets)


def _controlled(found: Iterable[Manifest], kind: Kind, uids: Container[str]) -> list[Manifest]:
    owners = ((each, controller(each)) for each in found)
    return [each for each, owner in owners if owner.get("kind") == kind.name and owner.get("uid") in uids]
