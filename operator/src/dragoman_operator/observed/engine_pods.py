"""Engine pods as values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_kube.objects import Key
from dragoman_kube.times import parse_time
from dragoman_operator.observed.snapshot import Manifest


@dataclass(frozen=True, slots=True)
class EnginePod:
    """A pod that has not ended and is not being deleted.

    Attributes:
        deployment: The name of its TranslationDeployment.
        address: Its IP; empty before it has one.
        changed_s: Time of the last change of readiness, Unix seconds.
    """

    uid: str
    namespace: str
    name: str
    deployment: str
    address: str
    ready: bool
    created_s: float
    changed_s: float
    restarts: int

    @property
    def key(self) -> Key:
        """Its TranslationDeployment."""
        return Key(self.namespace, self.deployment)


def engine_pods(pods: Iterable[Manifest]) -> list[EnginePod]:
    """The pods that count as replicas, from objects of the API server; malformed ones are ignored."""
    return [found for pod in pods if (found := _engine_pod(pod)) is not None]


def _engine_pod(pod: Manifest) -> EnginePod | None:
    try:
        return _read(pod) if _counts(pod) else None
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _counts(pod: Manifest) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
    labelled = (pod["metadata"].get("labels") or {}).get(LABEL_DEPLOYMENT)
    return bool(labelled) and "deletionTimestamp" not in pod["metadata"] and not ended


def _read(pod: Manifest) -> EnginePod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    conditions = {item.get("type"): item for item in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    created_s = _seconds(metadata["creationTimestamp"])
    containers = status.get("containerStatuses") or ()
    return EnginePod(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        deployment=metadata["labels"][LABEL_DEPLOYMENT],
        address=status.get("podIP") or "",
        ready=ready.get("status") == "True",
        created_s=created_s,
        changed_s=_seconds(ready["lastTransitionTime"]) if ready.get("lastTransitionTime") else created_s,
        restarts=max((int(item.get("restartCount", 0)) for item in containers), default=0),
    )


def _seconds(stamp: str) -> float:
    return parse_time(stamp).timestamp()
