"""Times and durations as Kubernetes writes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_DURATION_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def timestamp(moment: datetime | float) -> str:
    """RFC 3339 in UTC and whole seconds, of an aware time or of Unix seconds."""
    if not isinstance(moment, datetime):
        moment = datetime.fromtimestamp(moment, UTC)
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(moment: datetime) -> str:
    """RFC 3339 in UTC and microseconds, as Leases have it, of an aware time."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> datetime:
    """The aware time that an RFC 3339 timestamp stands for, with or without fractions of a second.

    Raises:
        ValueError: It is not a timestamp.
    """
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def duration_s(text: str) -> float:
    """The seconds of a Go duration such as ``60s``, ``1h30m`` or ``1.5ms``.

    Raises:
        ValueError: It is not a duration.
    Source: https://pkg.go.dev/time#ParseDuration
    """
    sign = -1 if text.startswith("-") else 1
    unsigned = text[1:] if text[:1] in ("-", "+") else text
    if unsigned == "0":
        return 0.0
    parts = _DURATION_PART.findall(unsigned)
    if not parts or "".join(number + unit for number, unit in parts) != unsigned:
        raise ValueError(f"{text!r} is not a duration such as 60s, 2m or 1h30m")
    return sign * sum(float(number) * _UNITS_S[unit] for number, unit in parts)
