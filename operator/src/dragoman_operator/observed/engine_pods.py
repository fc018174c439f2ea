"""Engine pods as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.objects import condition_of, created_at, labels_of
from dragoman_kube.times import parse_time
from dragoman_operator.observed.snapshot import Manifest, is_live

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
