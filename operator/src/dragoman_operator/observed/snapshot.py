"""A snapshot of the cluster for one reconciliation, and ownership by controller references: labels prove nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from dragoman_contract.kubernetes import API_VERSION, KIND, LABEL_DEPLOYMENT, PLURAL
from dragoman_kube.kinds import (
    DEPLOYMENT,
    DISRUPTION_BUDGET,
    HPA,
    NETWORK_POLICY,
    SCALED_OBJECT,
    SERVICE,
    SERVICE_ACCOUNT,
    TRIGGER_AUTHENTICATION,
    Kind,
)
from dragoman_kube.objects import (
    annotations_of,
    condition_of,
    controller_of,
    created_at,
    has_ended,
    is_deleting,
    labels_of,
)
from dragoman_kube.times import parse_time
from dragoman_operator.observed.drift import APPLIED, Applied

Manifest = Mapping[str, Any]
"""An object as the API server returned it."""


TRANSLATION_DEPLOYMENT = Kind(API_VERSION, KIND, PLURAL)

CHILD_KINDS = (SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DISRUPTION_BUDGET, HPA, DEPLOYMENT)
"""In the order of application: the Deployment is last, after all objects that its pods refer to."""

KEDA_KINDS = (TRIGGER_AUTHENTICATION, SCALED_OBJECT)
"""Children in mode KEDA. They are not watched, because most clusters do not have these kinds."""


@dataclass(frozen=True)
class Download:
    """The progress of a pod that downloads the model."""

    sentence: str
    """For people, one line."""
    ratio: float | None = None
    """0 to 1; None: not known, for example while another pod downloads into the same volume."""


@dataclass(frozen=True)
class Observed:
    """A snapshot of one TranslationDeployment's children and pods."""

    now: datetime
    """Time of the snapshot; aware, UTC."""
    children: Mapping[Kind, Manifest] = field(default_factory=dict)
    """Existing children, of this object only."""
    pods: tuple[Manifest, ...] = ()
    """Pods of `replica_sets`, also those that are being deleted."""
    status: Mapping[str, Any] = field(default_factory=dict)
    """The stored status of the TranslationDeployment."""
    replica_sets: tuple[Manifest, ...] = ()
    """Those of the operator's Deployment."""
    mount_failures: Mapping[str, str] = field(default_factory=dict)
    """Why pods wait for their volumes, by the pod's uid."""
    downloads: Mapping[str, Download] = field(default_factory=dict)
    """By the pod's uid."""
    provisioned: frozenset[str] = frozenset()
    """Uids of pods without a node for which a cluster autoscaler adds one."""
    keda: bool = False
    """Whether the cluster has KEDA's kinds and they were read."""
    applied: Mapping[Kind, Applied] = field(default_factory=dict)
    """The last applied manifests that webhooks changed."""
    foreign: Mapping[Kind, Manifest] = field(default_factory=dict)
    """Objects of other owners that have a child's name."""

    @property
    def replica_set_uids(self) -> frozenset[str]:
        """The uids of `replica_sets`."""
        return frozenset(found["metadata"]["uid"] for found in self.replica_sets)


def is_child(found: Manifest, uid: str) -> bool:
    """Whether a child is owned by the TranslationDeployment with this uid.

    One without a controller is, if it has the annotation `APPLIED`: the reference was removed and is restored.
    """
    owner = controller_of(found)
    return APPLIED in annotations_of(found) if owner is None else owner.get("uid") == uid


def is_live(pod: Manifest) -> bool:
    """Whether the pod has not ended, as evicted ones have, and is not being deleted."""
    return not is_deleting(pod) and not has_ended(pod)


TEMPLATE_HASH = "pod-template-hash"
"""Label with the hash of a pod's template.
Source: https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#pod-template-hash-label"""

SIZE_OPTION = "--max-num-seqs"
"""Option in an engine pod's command line."""


@dataclass(frozen=True, slots=True)
class EnginePod:
    """A pod that has not ended and is not being deleted.

    Attributes:
        address: Its IP; empty before it has one.
        changed_s: Time of the last change of readiness, Unix seconds.
    """

    uid: str
    namespace: str
    name: str
    address: str
    ready: bool
    created_s: float
    changed_s: float
    restarts: int
    template: str = ""
    max_num_seqs: int = 0


def engine_pods(pods: Iterable[Manifest]) -> list[EnginePod]:
    """The pods that count as replicas, from objects of the API server; malformed ones are ignored."""
    return [found for pod in pods if (found := _engine_pod(pod)) is not None]


def template_hash(labelled: Manifest) -> str:
    """Template hash of a pod or ReplicaSet."""
    return labels_of(labelled).get(TEMPLATE_HASH, "")


def size_of(pod: Manifest) -> int:
    """maxNumSeqs in a pod's command line; 0 without it, in pods of other owners."""
    for container in (pod.get("spec") or {}).get("containers") or ():
        arguments = [str(argument) for argument in container.get("args") or ()]
        for option, value in pairwise(arguments):
            if option == SIZE_OPTION and value.isdecimal():
                return int(value)
    return 0


def _engine_pod(pod: Manifest) -> EnginePod | None:
    try:
        if not is_live(pod) or not labels_of(pod).get(LABEL_DEPLOYMENT):
            return None
        metadata, status = pod["metadata"], pod.get("status") or {}
        ready = condition_of(pod, "Ready") or {}
        created_s = created_at(pod).timestamp()
        changed = ready.get("lastTransitionTime")
        containers = status.get("containerStatuses") or ()
        return EnginePod(
            uid=metadata["uid"],
            namespace=metadata["namespace"],
            name=metadata["name"],
            address=status.get("podIP") or "",
            ready=ready.get("status") == "True",
            created_s=created_s,
            changed_s=parse_time(changed).timestamp() if changed else created_s,
            restarts=max((int(item.get("restartCount", 0)) for item in containers), default=0),
            template=template_hash(pod),
            max_num_seqs=size_of(pod),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
