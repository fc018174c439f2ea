"""Startup times of replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any

from dragoman_operator.observed.snapshot import EnginePod

MAX_STARTS = 5
"""Number of startup times of which the median is used, so that one slow download has no effect."""
MAX_STARTING = 100
"""Maximum number of starting pods whose uids are stored in the status."""


@dataclass(frozen=True, slots=True)
class Starts:
    """Startup times: from a pod's creation until it is ready for the first time.

    A pod's status has only its latest transition. Therefore each pod is measured once: when it becomes ready after it
    was observed starting, or was created after all that were observed before.

    Attributes:
        measured: Seconds from creation to readiness, the oldest first, at most `MAX_STARTS`.
        newest_s: Creation time of the newest pod, Unix seconds of the API server.
        starting: The uids of pods that have not been ready yet, at most `MAX_STARTING`.
    """

    measured: tuple[float, ...] = ()
    newest_s: float = 0.0
    starting: frozenset[str] = frozenset()

    def seen(self, pods: Iterable[EnginePod], max_start_s: float) -> Starts:
        """With the startup times of pods that have become ready.

        A time above `max_start_s` is ignored: the pod waited for something else, such as a node. So is that of a pod
        with restarted containers.
        """
        pods = sorted(pods, key=lambda pod: (pod.created_s, pod.uid))
        pending = [pod for pod in pods if pod.uid in self.starting or pod.created_s > self.newest_s]
        starts = [pod.changed_s - pod.created_s for pod in pending if pod.ready and pod.restarts == 0]
        measured = (*self.measured, *(start_s for start_s in starts if 0 <= start_s <= max_start_s))
        return Starts(
            measured[-MAX_STARTS:],
            max((pod.created_s for pod in pods), default=self.newest_s),
            frozenset([pod.uid for pod in pending if not pod.ready][-MAX_STARTING:]),
        )

    @property
    def time_to_ready_s(self) -> float | None:
        """The median; None without a measurement."""
        return median(self.measured) if self.measured else None

    def to_fields(self) -> dict[str, Any]:
        """Fields for the status."""
        return {"measured": self.measured, "newest_s": self.newest_s, "starting": sorted(self.starting)}

    @classmethod
    def from_fields(cls, fields: Any, max_start_s: float, now: float) -> Starts:
        """Decode it; malformed or implausible values are ignored."""

        def plausible(start_s: Any) -> bool:
            return isinstance(start_s, int | float) and 0 <= start_s <= max_start_s

        if not isinstance(fields, Mapping):
            return cls()
        newest_s, starting = fields.get("newest_s"), fields.get("starting")
        return cls(
            measured=tuple(filter(plausible, fields.get("measured") or ()))[-MAX_STARTS:],
            newest_s=min(newest_s, now) if isinstance(newest_s, int | float) else now,
            starting=frozenset(map(str, starting[:MAX_STARTING]) if isinstance(starting, list) else ()),
        )
