"""Ages as kubectl prints them.

Source: k8s.io/apimachinery/pkg/util/duration, HumanDuration.
"""

from __future__ import annotations

import datetime

from dragoman_devcluster.api.objects import Json, parse_timestamp


def age(text: Json, now: datetime.datetime) -> str:
    """How long ago a Kubernetes time was: `5m30s`, `47h`, `12d`; `<unknown>` without one."""
    if not text:
        return "<unknown>"
    time = parse_timestamp(text) if isinstance(text, str) else None
    return human(int((now - time).total_seconds())) if time else "<invalid>"


def human(seconds: int) -> str:
    """A duration in seconds with two units at most, the finer one only while it matters."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours = seconds // 60, seconds // 3600
    days = hours // 24
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _pair(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _pair(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _pair(days, "d", hours % 24, "h")
    if days < 365 * 2:
        return f"{days}d"
    if days < 365 * 8:
        return _pair(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _pair(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
