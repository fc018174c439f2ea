"""Engine pods as the autoscaler sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Any

from dragoman_contract.kubernetes import LABEL_DEPLOYMENT
from dragoman_operator.autoscaling.decision import ReplicaSample, Samples
from dragoman_operator.autoscaling.sources.router_load import TotalLoad
from dragoman_operator.observed.snapshot import Key, Manifest

STARTS_KEPT = 5
"""Starts whose median is the time to ready: one slow download among them changes nothing."""
STARTING_KEPT = 100
"""Pods that are remembered while they start: their uids are stored in the status, whose size is limited."""


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
    """Those of the pods that count as replicas, as the API server returned them; malformed ones do not."""
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
    return datetime.fromisoformat(stamp).timestamp()


def by_deployment(pods: Iterable[Manifest]) -> dict[Key, list[Manifest]]:
    """The pods by the TranslationDeployment that their label names, whatever their owner."""
    found: dict[Key, list[Manifest]] = {}
    for pod in pods:
        metadata = pod.get("metadata") or {}
        name = (metadata.get("labels") or {}).get(LABEL_DEPLOYMENT) or ""
        found.setdefault(Key(metadata.get("namespace") or "", name), []).append(pod)
    return found


@dataclass(frozen=True, slots=True)
class Starts:
    """How long replicas took to become ready for the first time.

    A pod's status has only its latest transition. So each pod is measured once: when it becomes ready after it was
    seen starting, or was created after all that were seen before.

    Attributes:
        measured: Seconds from creation to readiness, the oldest first, at most `STARTS_KEPT`.
        before: What was measured by an operator that remembered no more than that; None where there was none.
        newest_s: When the newest pod that was seen was created, Unix seconds of the API server.
        starting: The uids of pods that have not been ready yet, at most `STARTING_KEPT`.
    """

    measured: tuple[float, ...] = ()
    before: float | None = None
    newest_s: float = 0.0
    starting: frozenset[str] = frozenset()

    def seen(self, pods: Iterable[EnginePod], longest_s: float) -> Starts:
        """Measure the pods that have become ready.

        Args:
            pods: All of one deployment.
            longest_s: A start that took longer waited for something else, such as a node, and is left out. So is that
                of a pod whose container had to be restarted.
        """
        pods = sorted(pods, key=lambda pod: (pod.created_s, pod.uid))
        pending = [pod for pod in pods if pod.uid in self.starting or pod.created_s > self.newest_s]
        starts = [pod.changed_s - pod.created_s for pod in pending if pod.ready and pod.restarts == 0]
        measured = (*self.measured, *(start_s for start_s in starts if 0 <= start_s <= longest_s))
        return Starts(
            measured[-STARTS_KEPT:],
            self.before,
            max((pod.created_s for pod in pods), default=self.newest_s),
            frozenset([pod.uid for pod in pending if not pod.ready][-STARTING_KEPT:]),
        )

    @property
    def time_to_ready_s(self) -> float | None:
        """The median; None where no start was seen."""
        return median(self.measured) if self.measured else self.before

    def to_fields(self) -> dict[str, Any]:
        """What is stored in the status."""
        return {"measured": self.measured, "newest_s": self.newest_s, "starting": sorted(self.starting)}

    @classmethod
    def from_fields(cls, fields: Any, before: Any, longest_s: float, now: float) -> Starts:
        """Read it back; what cannot be read, or is not plausible, is left out.

        Args:
            fields: Of `to_fields`; None where there are none.
            before: The time to ready that the status has.
            longest_s: As in `seen`.
            now: Unix seconds.
        """

        def plausible(start_s: Any) -> bool:
            return isinstance(start_s, int | float) and 0 <= start_s <= longest_s

        before = float(before) if plausible(before) else None
        if not isinstance(fields, Mapping):
            # Of a pod that was ready before it is not known whether that was the first time.
            return cls(before=before, newest_s=0.0 if before is None else now)
        newest_s, starting = fields.get("newest_s"), fields.get("starting")
        return cls(
            measured=tuple(filter(plausible, fields.get("measured") or ()))[-STARTS_KEPT:],
            before=before,
            newest_s=min(newest_s, now) if isinstance(newest_s, int | float) else now,
            starting=frozenset(map(str, starting[:STARTING_KEPT]) if isinstance(starting, list) else ()),
        )


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
