"""The last hours of each deployment at this router, in memory: one sample a minute, for the fleet view."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

from msgspec.structs import replace

from dragoman_protocols.fleet import Sample
from dragoman_router.fleet.backend import DURATION_BUCKETS_S, Backend
from dragoman_router.fleet.fleet import Fleet
from dragoman_router.fleet.status import Status

TICK_S = 5
STEP_S = 60
KEPT = 240
"""Samples of a deployment: four hours."""
MAX_DEPLOYMENTS = 200
"""With a history: 240 samples take 60 KB."""
P95 = 0.95


class Reading(NamedTuple):
    """One deployment at one moment.

    Args:
        at: As it is; its characters are those since the deployment is known, and it has no percentile.
        durations: Responses since then, by bucket of `DURATION_BUCKETS_S`.
    """

    at: Sample
    durations: tuple[int, ...]


def read(backend: Backend, status: Status | None, now_s: float) -> Reading:
    """A deployment as it is.

    Args:
        backend: The deployment.
        status: What the operator reports; None: nothing, and the replicas are those that the source lists.
        now_s: Unix seconds.
    """
    counts, wanted = backend.responses, len(backend.endpoints)
    if status is None:
        status = Status(ready=backend.open_count)
    sample = Sample(
        time=int(now_s),
        ready=status.ready,
        wanted=wanted if status.wanted is None else status.wanted,
        queued=backend.queued + (status.waiting or 0),
        running=backend.in_flight if status.running is None else status.running,
        characters=counts.characters,
        kv_cache_usage=status.kv_cache_usage,
        gpus=status.gpus,
    )
    return Reading(sample, tuple(counts.buckets))


def summary(readings: Sequence[Reading]) -> Sample:
    """The time between the first and the last reading as one sample: queue, running and KV cache are the highest.

    Args:
        readings: At least one, oldest first.
    """
    samples = [each.at for each in readings]
    known = [each.kv_cache_usage for each in samples if each.kv_cache_usage is not None]
    return replace(
        latest(readings),
        queued=max(each.queued for each in samples),
        running=max(each.running for each in samples),
        kv_cache_usage=max(known, default=None),
    )


def latest(readings: Sequence[Reading]) -> Sample:
    """The last reading, with the characters and the percentile of the time since the first one."""
    first, last = readings[0], readings[-1]
    durations = [max(0, now - before) for now, before in zip(last.durations, first.durations, strict=True)]
    return replace(
        last.at,
        characters=max(0, last.at.characters - first.at.characters),
        p95_s=quantile(P95, durations),
    )


def quantile(share: float, counts: Sequence[int]) -> float | None:
    """A quantile of durations, in seconds, as Prometheus's `histogram_quantile` has it; None without any.

    Args:
        share: 0 to 1.
        counts: By bucket of `DURATION_BUCKETS_S`, and above; the quantile is at most the last bound.
    """
    sums = list(accumulate(counts))
    if not sums[-1]:
        return None
    rank, low = share * sums[-1], 0.0
    for bound, count, total in zip(DURATION_BUCKETS_S, counts, sums, strict=False):
        if total >= rank and count:
            return round(low + (bound - low) * (1 - (total - rank) / count), 4)
        low = bound
    return float(DURATION_BUCKETS_S[-1])


class _Track:
    """One deployment's readings of the last minute, and its samples."""

    __slots__ = ("readings", "samples")

    def __init__(self) -> None:
        self.readings: deque[Reading] = deque(maxlen=STEP_S // TICK_S + 1)
        self.samples: deque[Sample] = deque(maxlen=KEPT)


class FleetHistory:
    """The history of all deployments.

    Args:
        seconds: The time in Unix seconds.
    """

    def __init__(self, fleet: Fleet, seconds: Callable[[], float] = time.time) -> None:
        self._fleet, self._seconds = fleet, seconds
        self._tracks: dict[str, _Track] = {}
        self._ticks = 0

    async def run(self) -> None:
        """Read all deployments again and again, until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_S)

    def tick(self) -> None:
        """Read all deployments; a sample is made once a minute.

        Takes 0.2 ms for 200 deployments, and once a minute 2.5 ms.
        """
        backends, now_s = self._fleet.backends, self._seconds()
        for gone in self._tracks.keys() - backends.keys():
            del self._tracks[gone]
        complete = self._ticks % (STEP_S // TICK_S) == 0
        self._ticks += 1
        for key, backend in backends.items():
            track = self._tracks.get(key)
            if track is None:
                if len(self._tracks) >= MAX_DEPLOYMENTS:
                    continue
                track = self._tracks[key] = _Track()
            track.readings.append(read(backend, self._fleet.statuses.get(key), now_s))
            if complete:
                track.samples.append(summary(track.readings))

    def of(self, key: str) -> tuple[Sample, tuple[Sample, ...]]:
        """A deployment now, and its samples, oldest first.

        Raises:
            KeyError: It is not known.
        """
        now = read(self._fleet.backends[key], self._fleet.statuses.get(key), self._seconds())
        track = self._tracks.get(key)
        if track is None:
            return latest([now]), ()
        return latest([*track.readings, now]), tuple(track.samples)
