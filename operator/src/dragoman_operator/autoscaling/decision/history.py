"""What the autoscaler remembers from one tick to the next: small, and as JSON in the object's status.

An operator that restarts reads it back and goes on. One that finds none, or one too old, only waits longer before
it shrinks: what was not watched for a whole window is never taken for quiet.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

POINTS_S = 180.0
"""Arrivals are kept for this long, tick by tick: long enough for a trend over a replica's start."""

PEAK_EVERY_S = 30.0
"""Peaks closer together than this are kept as one, so that half an hour of them is at most sixty. Under a
window that is set shorter, a tenth of it."""


class Point(NamedTuple):
    """One tick.

    Attributes:
        at: Its end, Unix seconds.
        span_s: Its length.
        arrived: Requests that came in it.
        busy_s: Seconds that sequences spent running in it, over all of them.
        finished: Requests that finished in it.
    """

    at: float
    span_s: float
    arrived: float
    busy_s: float
    finished: float


class Peak(NamedTuple):
    """The replicas that the load asked for at one time, not rounded; no later one asked for more."""

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
        watched_since: When unbroken watching began; None before the first tick.
        seen: The last tick, None while metrics are out.
        points: Arrivals of the last `POINTS_S`, oldest first.
        peaks: What the load asked for, oldest and highest first.
        grown: When replicas grew within the last minute, and from how many.
        window_s: How far back shrinking looks, where experience has made it longer; 0 before.
        shrunk_at: The last shrink that is not yet known to be right or wrong.
        shrunk_last: The last shrink.
        asked_at: When a request was last seen.
        service_s: Seconds that a request last spent in an engine.
    """

    watched_since: float | None = None
    seen: Seen | None = None
    points: tuple[Point, ...] = ()
    peaks: tuple[Peak, ...] = ()
    grown: tuple[tuple[float, int], ...] = ()
    window_s: float = 0.0
    shrunk_at: float | None = None
    shrunk_last: float | None = None
    asked_at: float | None = None
    service_s: float | None = None

    def with_point(self, point: Point) -> History:
        """Add a tick and forget those too old."""
        kept = tuple(old for old in self.points if old.at > point.at - POINTS_S)
        return replace(self, points=(*kept, point))

    def with_peak(self, at: float, replicas: float, keep_s: float, every_s: float = PEAK_EVERY_S) -> History:
        """Add what the load asks for now; lower ones before it no longer matter, older than `keep_s` neither."""
        peaks = [peak for peak in self.peaks if peak.at > at - keep_s and peak.replicas > replicas]
        if peaks and peaks[-1].at // every_s == at // every_s:
            peaks[-1] = Peak(at, peaks[-1].replicas)
        else:
            peaks.append(Peak(at, replicas))
        return replace(self, peaks=tuple(peaks))

    def peak(self, since: float) -> float:
        """The most replicas that the load has asked for since then; 0 if it was not watched."""
        return max((peak.replicas for peak in self.peaks if peak.at >= since), default=0.0)

    def to_json(self) -> str:
        """One line, a few kilobytes at most; figures rounded to what they mean."""
        return json.dumps(_rounded(asdict(self)), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str | None) -> History:
        """Read it back. What cannot be read is no history, which is safe: see the module."""
        try:
            fields = json.loads(text or "{}")
            found = cls(
                watched_since=_optional(fields.get("watched_since")),
                seen=None if fields.get("seen") is None else _seen(*fields["seen"]),
                points=tuple(Point(*map(_finite, point)) for point in fields.get("points", ())),
                peaks=tuple(Peak(*map(_finite, peak)) for peak in fields.get("peaks", ())),
                grown=tuple((_finite(at), int(count)) for at, count in fields.get("grown", ())),
                window_s=_finite(fields.get("window_s", 0.0)),
                shrunk_at=_optional(fields.get("shrunk_at")),
                shrunk_last=_optional(fields.get("shrunk_last")),
                asked_at=_optional(fields.get("asked_at")),
                service_s=_optional(fields.get("service_s")),
            )
        except (ValueError, TypeError, AttributeError, KeyError, OverflowError, RecursionError):
            return cls()
        return found if found._is_plausible() else cls()

    def begins_after(self, now: float) -> bool:
        """Whether something in it lies in the future: by a wrong clock, or edited."""
        times = [self.watched_since, self.shrunk_at, self.shrunk_last, self.asked_at]
        times += [each[0] for each in (*self.points, *self.peaks, *self.grown, *filter(None, [self.seen]))]
        return any(time is not None and time > now for time in times)

    def _is_plausible(self) -> bool:
        """Whether no figure is one that is never written."""
        figures = [self.window_s, self.service_s or 0.0, *(count for _, count in self.grown)]
        figures += [figure for each in (*self.points, *self.peaks) for figure in each[1:]]
        figures += self.seen[1:] if self.seen else ()
        return min(figures) >= 0 and all(point.span_s > 0 for point in self.points)


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
