"""State of the autoscaler between two ticks: small, and stored as JSON in the object's status.

An operator that restarts continues from it. Without it, or if it is too old, scale-down only waits longer: it needs
a whole window of observation.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import Field, PlainSerializer, TypeAdapter

POINTS_S = 180.0
"""Age of the oldest arrivals: long enough for a trend over a replica's startup."""

PEAK_EVERY_S = 30.0
"""Peaks closer together than this are stored as one, so that half an hour has at most sixty. With a shorter
stabilization window, a tenth of it."""


FORMER_KEYS = {
    "asked_at": "last_request_at",
    "grown": "scale_ups",
    "shrunk_at": "scaled_down_at",
    "shrunk_last": "last_scale_down",
    "watched_since": "observed_since",
}
"""Keys that an earlier operator stored."""

Number = Annotated[float, Field(allow_inf_nan=False), PlainSerializer(lambda value: round(value, 3))]
Amount = Annotated[Number, Field(ge=0)]


class Point(NamedTuple):
    """One tick.

    Attributes:
        at: Its end, Unix seconds.
        busy_s: Running time in it, summed over sequences.
    """

    at: Number
    span_s: Annotated[Amount, Field(gt=0)]
    arrived: Amount
    busy_s: Amount
    finished: Amount


class Peak(NamedTuple):
    """Replicas that the load required at one time, not rounded; no later peak is higher."""

    at: Number
    replicas: Amount


class Seen(NamedTuple):
    """The tick before this one."""

    at: Number
    in_flight: Amount
    running: Amount
    ready: Annotated[int, Field(ge=0)]
    missing: Annotated[int, Field(ge=0)]


@dataclass(frozen=True, slots=True)
class History:
    """See the module.

    Attributes:
        observed_since: Start of uninterrupted observation; None before the first tick.
        seen: The last tick; None while metrics are unavailable.
        points: Arrivals of the last `POINTS_S`, oldest first.
        peaks: Replicas that the load required, oldest and highest first.
        scale_ups: Times of the scale-ups of the last minute, and the number of replicas before.
        window_s: Stabilization window for scaling down, if adapted; 0 before.
        scaled_down_at: Time of the last scale-down that is not yet confirmed or reverted.
        requested: Replicas requested in `spec.replicas`, kept for a stabilization window; None without a request.
    """

    observed_since: Number | None = None
    seen: Seen | None = None
    points: tuple[Point, ...] = ()
    peaks: tuple[Peak, ...] = ()
    scale_ups: tuple[tuple[Number, Annotated[int, Field(ge=0)]], ...] = ()
    window_s: Amount = 0.0
    scaled_down_at: Number | None = None
    last_scale_down: Number | None = None
    last_request_at: Number | None = None
    service_s: Amount | None = None
    requested: Peak | None = None

    def with_point(self, point: Point) -> History:
        """With one more tick, and without those that are too old."""
        kept = tuple(old for old in self.points if old.at > point.at - POINTS_S)
        return replace(self, points=(*kept, point))

    def with_peak(self, at: float, replicas: float, keep_s: float, every_s: float = PEAK_EVERY_S) -> History:
        """With the replicas required now; drops lower peaks before it, and those older than `keep_s`."""
        peaks = [peak for peak in self.peaks if peak.at > at - keep_s and peak.replicas > replicas]
        if peaks and peaks[-1].at // every_s == at // every_s:
            peaks[-1] = Peak(at, peaks[-1].replicas)
        else:
            peaks.append(Peak(at, replicas))
        return replace(self, peaks=tuple(peaks))

    def peak(self, since: float) -> float:
        """The maximum number of replicas that the load required since then; 0 without observation."""
        return max((peak.replicas for peak in self.peaks if peak.at >= since), default=0.0)

    def to_json(self) -> str:
        """One line of at most a few kilobytes; numbers are rounded."""
        return _HISTORY.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str | None) -> History:
        """Decode it. A malformed one is an empty history, which is safe: see the module."""
        try:
            stored = json.loads(text or "{}")
            return _HISTORY.validate_python({FORMER_KEYS.get(key, key): each for key, each in stored.items()})
        except (ValueError, AttributeError, RecursionError):
            return cls()

    def begins_after(self, now: float) -> bool:
        """Whether a time in it is in the future: because of a wrong clock, or edited."""
        times = [self.observed_since, self.scaled_down_at, self.last_scale_down, self.last_request_at]
        times += [
            each[0]
            for each in (
                *self.points,
                *self.peaks,
                *self.scale_ups,
                *filter(None, [self.seen, self.requested]),
            )
        ]
        return any(time is not None and time > now for time in times)


_HISTORY = TypeAdapter(History)
