"""Times as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime


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
