"""How long replicas take to start, and one deployment as the decision is shown it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dragoman_operator.autoscaling.decision import ReplicaSample, Samples, TotalLoad
from dragoman_operator.observed.engine_pods import EnginePod

STARTS_KEPT = 5
"""Starts whose median is the time to ready: one slow download among them changes nothing."""
STARTING_KEPT = 100
"""Pods that are remembered while they start: their uids are stored in the status, whose size is limited."""


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
