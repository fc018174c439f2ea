"""State of the autoscaler between two ticks: small, and stored as JSON in the object's status.

An operator that restarts continues from it. Without it, or if it is too old, scale-down only waits longer: it needs
a whole window of observation.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

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


class Point(NamedTuple):
    """One tick.

    Attributes:
        at: Its end, Unix seconds.
        busy_s: Running time in it, summed over sequences.
    """

    at: float
    span_s: float
    arrived: float
    busy_s: float
    finished: float


class Peak(NamedTuple):
    """Replicas that the load required at one time, not rounded; no later peak is higher."""

    at: float
    replicas: float


class Seen(NamedTuple):
    """The tick before this one."""

    at: float
    in_flight: float
    running: float
    ready: int
    missing: int


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

    observed_since: float | None = None
    seen: Seen | None = None
    points: tuple[Point, ...] = ()
    peaks: tuple[Peak, ...] = ()
    scale_ups: tuple[tuple[float, int], ...] = ()
    window_s: float = 0.0
    scaled_down_at: float | None = None
    last_scale_down: float | None = None
    last_request_at: float | None = None
    service_s: float | None = None
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
        return json.dumps(_rounded(asdict(self)), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> History:
        """Decode it. A malformed one is an empty history, which is safe: see the module."""
        try:
            stored = json.loads(text or "{}")
            fields = {FORMER_KEYS.get(key, key): value for key, value in stored.items()}
            found = cls(
                observed_since=_optional(fields.get("observed_since")),
                seen=None if fields.get("seen") is None else _seen(*fields["seen"]),
                points=tuple(Point(*map(_finite, point)) for point in fields.get("points", ())),
                peaks=tuple(Peak(*map(_finite, peak)) for peak in fields.get("peaks", ())),
                scale_ups=tuple((_finite(at), int(count)) for at, count in fields.get("scale_ups", ())),
                window_s=_finite(fields.get("window_s", 0.0)),
                scaled_down_at=_optional(fields.get("scaled_down_at")),
                last_scale_down=_optional(fields.get("last_scale_down")),
                last_request_at=_optional(fields.get("last_request_at")),
                service_s=_optional(fields.get("service_s")),
                requested=None
                if fields.get("requested") is None
                else Peak(*map(_finite, fields["requested"])),
            )
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
            return cls()
        return found if found._is_plausible() else cls()

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

    def _is_plausible(self) -> bool:
        """Whether all numbers are in the range that the autoscaler writes."""
        numbers = [self.window_s, self.service_s or 0.0, *(count for _, count in self.scale_ups)]
        numbers += [number for each in (*self.points, *self.peaks) for number in each[1:]]
        numbers += [*(self.seen or ())[1:], *(self.requested or ())[1:]]
        return min(numbers) >= 0 and all(point.span_s > 0 for point in self.points)


def _seen(at: float, in_flight: float, running: float, ready: int, missing: int) -> Seen:
    return Seen(_finite(at), _finite(in_flight), _finite(running), int(ready), int(missing))


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"{value!r} in a history")
    return number


def _optional(value: Any) -> float | None:
    return None if value is None else _finite(value)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, dict):
        return {key: _rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(entry) for entry in value]
    return value
