"""Engine pods as the autoscaler sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_operator.core.autoscale import ReplicaSample, Samples
from dragoman_operator.core.observed import Key, Manifest
from dragoman_operator.core.router_load import TotalLoad

STARTS_KEPT = 5
"""Starts whose median is the time to ready: one slow download among them changes nothing."""


@dataclass(frozen=True, slots=True)
class EnginePod:
    """A pod that has not ended and is not asked to.

    Attributes:
        uid: Which it is.
        namespace: Its namespace.
        name: Its name.
        deployment: The name of its TranslationDeployment.
        address: Its IP; empty before it has one.
        ready: Whether its readiness probe passes.
        created_s: When it was made, Unix seconds.
        changed_s: When it last became ready or unready, Unix seconds.
        restarts: How often its container was started again.
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
    """Those of the pods that count as replicas, as the API server returned them."""
    return [_engine_pod(pod) for pod in pods if _counts(pod)]


def _counts(pod: Manifest) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded")
    return "deletionTimestamp" not in pod["metadata"] and not ended


def _engine_pod(pod: Manifest) -> EnginePod:
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
        restarts=max((item.get("restartCount", 0) for item in containers), default=0),
    )


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@dataclass(frozen=True, slots=True)
class Starts:
    """How long replicas took to become ready.

    Attributes:
        measured: Seconds by the uid of a pod, the oldest first.
        before: What an earlier operator measured; None where there was none.
    """

    measured: tuple[tuple[str, float], ...] = ()
    before: float | None = None

    def seen(self, pods: Iterable[EnginePod]) -> Starts:
        """Add the pods that have become ready; one that had to be restarted says nothing about a start."""
        known = {uid for uid, _ in self.measured}
        new = [
            (pod.uid, max(0.0, pod.changed_s - pod.created_s))
            for pod in sorted(pods, key=lambda pod: pod.changed_s)
            if pod.ready and pod.restarts == 0 and pod.uid not in known
        ]
        return Starts((*self.measured, *new)[-STARTS_KEPT:], self.before) if new else self

    @property
    def time_to_ready_s(self) -> float | None:
        """The median; None where no start was seen."""
        return median(seconds for _, seconds in self.measured) if self.measured else self.before


def samples_of(
    desired: int,
    asked_s: float,
    pods: Sequence[EnginePod],
    heard: Mapping[str, ReplicaSample],
    load: TotalLoad,
    time_to_ready_s: float | None,
    now: float,
) -> Samples:
    """One deployment as `recommend` is shown it.

    Args:
        desired: Replicas asked for.
        asked_s: When that was last changed, Unix seconds: the age of replicas that have no pod yet.
        pods: Its pods.
        heard: Samples by uid.
        load: What the routers say of it.
        time_to_ready_s: How long a replica takes to start; None before the first.
        now: Unix seconds.
    """
    ready = [pod for pod in pods if pod.ready]
    waiting = [pod.changed_s for pod in pods if not pod.ready]
    if desired > len(pods):
        waiting.append(asked_s)
    return Samples(
        desired=desired,
        replicas=tuple(heard.get(pod.uid, ReplicaSample(None)) for pod in ready),
        pending=max(0, max(len(pods), desired) - len(ready)),
        pending_s=max(0.0, now - min(waiting)) if waiting else 0.0,
        held=float(load.held),
        time_to_ready_s=time_to_ready_s,
        silent_routers=load.silent,
    )
