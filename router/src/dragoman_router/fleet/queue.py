"""Fair queue of requests: limited by number, bytes and age; clients take turns.

If it is full, the newest request of the client with the most requests is evicted.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Bounds of one deployment's queue.

    Args:
        bytes: Maximum bytes of their bodies.
        age_s: Maximum seconds in the queue.
        time_s: Seconds for a request and its response: while replicas are busy, as many are queued as are answered in
            this time. Not less for a request whose client allows less, because it would evict others.
    """

    count: int = 1000
    bytes: int = 64 * 1024 * 1024
    age_s: float = 120.0
    time_s: float = 30.0


class QueuedRequest(Generic[T]):
    """One request in the queue."""

    __slots__ = ("caller", "request", "since_s", "size_bytes")

    def __init__(self, caller: str, size_bytes: int, since_s: float, request: T) -> None:
        self.caller, self.size_bytes, self.since_s, self.request = caller, size_bytes, since_s, request


class FairQueue(Generic[T]):
    """The queued requests of one deployment."""

    def __init__(self, limits: QueueLimits) -> None:
        self.limits = limits
        self._lines: OrderedDict[str, deque[QueuedRequest[T]]] = OrderedDict()
        self._count = 0
        self._bytes = 0

    def __len__(self) -> int:
        return self._count

    def oldest_since_s(self) -> float | None:
        """When the oldest request was queued; None where the queue is empty."""
        return min((line[0].since_s for line in self._lines.values()), default=None)

    def add(self, queued: QueuedRequest[T], capacity: float = float("inf")) -> QueuedRequest[T] | None:
        """Append a request.

        Args:
            queued: The request.
            capacity: Maximum number of requests now, where that is less than `QueueLimits.count`.

        Returns:
            The request that was evicted, which may be this one; None where none was.
        """
        evicted: QueuedRequest[T] | None = None
        if (
            self._count >= min(self.limits.count, capacity)
            or self._bytes + queued.size_bytes > self.limits.bytes
        ):
            evicted = self._evict_for(queued)
            if evicted is queued:
                return queued
            self.remove(evicted)
        self._lines.setdefault(queued.caller, deque()).append(queued)
        self._count += 1
        self._bytes += queued.size_bytes
        return evicted

    def take(self) -> QueuedRequest[T] | None:
        """Remove the next request; its client goes to the end of the turn."""
        if not self._lines:
            return None
        caller, line = self._lines.popitem(last=False)
        queued = line.popleft()
        if line:
            self._lines[caller] = line
        self._count -= 1
        self._bytes -= queued.size_bytes
        return queued

    def remove(self, queued: QueuedRequest[T]) -> bool:
        """Remove a request; whether it was queued."""
        line = self._lines.get(queued.caller)
        if line is None or queued not in line:
            return False
        line.remove(queued)
        if not line:
            del self._lines[queued.caller]
        self._count -= 1
        self._bytes -= queued.size_bytes
        return True

    def _evict_for(self, queued: QueuedRequest[T]) -> QueuedRequest[T]:
        own = len(self._lines.get(queued.caller, ()))
        longest = max(self._lines.values(), key=len, default=None)
        if longest is None or len(longest) <= own + 1:
            return queued
        newest = longest[-1]
        fits = self._bytes - newest.size_bytes + queued.size_bytes <= self.limits.bytes
        return newest if fits else queued
