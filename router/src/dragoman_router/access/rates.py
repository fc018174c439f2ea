"""Rates of a key or of a client's address, and the token bucket that enforces them in one router."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """What one key may use at all routers together; None is without limit.

    Args:
        requests_per_s: Average requests a second; as many as `burst_s` of them at once, at least one.
        characters_per_s: Average characters a second, likewise.
        character_limit: Characters in a period, usually a month.
        burst_s: Seconds of the rate that a pause saves up.
    """

    requests_per_s: float | None = None
    characters_per_s: float | None = None
    character_limit: int | None = None
    burst_s: float = 10.0

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return (
            self.character_limit is not None
            or self.requests_per_s is not None
            or self.characters_per_s is not None
        )


class Bucket:
    """A token bucket: it fills by `rate` a second up to `size`, and may be overdrawn once.

    Overdrawing admits a request that is larger than the bucket; the next one waits until the debt is refilled.
    `state/scripts.py` has the same bucket in Lua.
    """

    __slots__ = ("_at_s", "_level", "_rate", "_size")

    def __init__(self, rate: float, size: float, now_s: float) -> None:
        self._rate, self._size = rate, size
        self._level, self._at_s = size, now_s

    def wait_s(self, now_s: float) -> float:
        """Seconds until the next request is admitted; 0: it is now."""
        self._level = min(self._size, self._level + max(0.0, now_s - self._at_s) * self._rate)
        self._at_s = now_s
        return max(0.0, (1.0 - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Remove what was admitted; a negative amount is given back."""
        self._level -= amount


def bucket_size(rate: float, burst_s: float) -> float:
    """Tokens in a full bucket: at least one, or nothing would ever be admitted."""
    return max(1.0, rate * burst_s)
