"""Requests that wait for a replica: bounded by count, bytes and age, and fair between callers.

Callers take turns, so that one that sends a thousand requests does not keep another's single one waiting; and where
there is no room left, the newest of whoever holds the most makes room for a caller that holds less.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class HoldLimits:
    """Bounds of one deployment's queue.

    Args:
        count: Requests.
        bytes: Of their bodies together.
        age_s: Seconds that one may wait.
        time_s: Seconds that a request has, its answer included: while replicas are busy, so many wait as are answered
            in it. Not less for a request whose client allows less: it would push out others.
    """

    count: int = 1000
    bytes: int = 64 * 1024 * 1024
    age_s: float = 120.0
    time_s: float = 30.0


class Held(Generic[T]):
    """One request that waits.

    Args:
        caller: Who sent it; callers take turns.
        size_bytes: Of its body.
        since_s: When it came.
        request: What is handed on.
    """

    __slots__ = ("caller", "request", "since_s", "size_bytes")

    def __init__(self, caller: str, size_bytes: int, since_s: float, request: T) -> None:
        self.caller, self.size_bytes, self.since_s, self.request = caller, size_bytes, since_s, request


class HoldQueue(Generic[T]):
    """The requests that wait for one deployment.

    Args:
        limits: Its bounds.
    """

    def __init__(self, limits: HoldLimits) -> None:
        self.limits = limits
        self._lines: OrderedDict[str, deque[Held[T]]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    @property
    def size_bytes(self) -> int:
        """Of all bodies together."""
        return self._bytes

    def oldest_since_s(self) -> float | None:
        """When the one that waits longest came; None where none waits."""
        return min((line[0].since_s for line in self._lines.values()), default=None)

    def add(self, held: Held[T], room: float = float("inf")) -> Held[T] | None:
        """Put one at the end of its caller's line.

        Args:
            held: The request.
            room: Requests that may wait now, where that is less than `HoldLimits.count`.

        Returns:
            None where there was room; else the one that has no place: one that was pushed out for it, or itself.
        """
        pushed_out: Held[T] | None = None
        if self._count >= min(self.limits.count, room) or self._bytes + held.size_bytes > self.limits.bytes:
            pushed_out = self._makes_room(held)
            if pushed_out is held:
                return held
            self.remove(pushed_out)
        self._lines.setdefault(held.caller, deque()).append(held)
        self._count += 1
        self._bytes += held.size_bytes
        return pushed_out

    def take(self) -> Held[T] | None:
        """The next one; its caller goes to the end of the turn."""
        if not self._lines:
            return None
        caller, line = self._lines.popitem(last=False)
        held = line.popleft()
        if line:
            self._lines[caller] = line
        self._count -= 1
        self._bytes -= held.size_bytes
        return held

    def remove(self, held: Held[T]) -> bool:
        """Take one out that no longer waits; False where it was not there."""
        line = self._lines.get(held.caller)
        if line is None or held not in line:
            return False
        line.remove(held)
        if not line:
            del self._lines[held.caller]
        self._count -= 1
        self._bytes -= held.size_bytes
        return True

    def _makes_room(self, held: Held[T]) -> Held[T]:
        own = len(self._lines.get(held.caller, ()))
        longest = max(self._lines.values(), key=len, default=None)
        if longest is None or len(longest) <= own + 1:
            return held
        newest = longest[-1]
        fits = self._bytes - newest.size_bytes + held.size_bytes <= self.limits.bytes
        return newest if fits else held
