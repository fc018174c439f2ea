"""When a pod that was told to end may stop serving: the pod's half of `dragoman_contract.routing`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from dragoman_contract.routing import LAME_DUCK_S, ROUTER_SEEN_S

ON_THE_WAY_S = 1.0
"""Requests that a router sent before its confirmation may arrive so much after it; later ones take it back."""

MOST_ROUTERS = 256
"""So many are remembered: who asks a pod can make names up."""


DIRECT_SEEN_S = 10.0
"""A client that came by no router for so long is not expected back. Longer than a kube-proxy takes to hear of an
endpoint's end, and than the pauses of a client with steady load on a kept connection."""


FETCH_S = 12.0
"""A result that nobody has fetched for so long is no reason to stay: DeepL's clients look every five seconds."""


class Unfetched:
    """Results whose owners are about to fetch them: a pod that leaves waits for that, for a while.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until_s: dict[str, float] = {}
        self._none = asyncio.Event()

    def __len__(self) -> int:
        now_s = self._clock()
        return sum(until_s > now_s for until_s in self._until_s.values())

    def put(self, key: str) -> None:
        """A result is there."""
        now_s = self._clock()
        self._until_s = {each: until_s for each, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[key] = now_s + FETCH_S
        self._none.clear()

    def fetched(self, key: str) -> None:
        """It has been handed out."""
        if self._until_s.pop(key, None) is not None and not self._until_s:
            self._none.set()

    def forget(self) -> None:
        """Nothing is waited for any more."""
        self._until_s.clear()
        self._none.set()

    async def until_none(self, timeout_s: float) -> bool:
        """Wait until all are fetched, or too old; False where `timeout_s` seconds were not enough."""
        end_s = self._clock() + timeout_s
        while len(self):
            wait_s = min(end_s, max(self._until_s.values())) - self._clock()
            try:
                async with asyncio.timeout(max(0.0, wait_s)):
                    await self._none.wait()
            except TimeoutError:
                if self._clock() >= end_s:
                    return not len(self)
        return True


@dataclass(frozen=True)
class Seen:
    """What a pod knows of one router.

    Args:
        heard_s: When its last request came, in monotonic seconds.
        drained_s: When it confirmed that nothing new will come, or None.
    """

    heard_s: float
    drained_s: float | None = None

    def lately(self, now_s: float) -> bool:
        """Whether it was heard from within `ROUTER_SEEN_S`."""
        return now_s - self.heard_s <= ROUTER_SEEN_S

    @property
    def drained(self) -> bool:
        """Whether nothing new will come from it."""
        return self.drained_s is not None and self.heard_s <= self.drained_s + ON_THE_WAY_S


def may_stop(routers: Collection[Seen], now_s: float, direct_s: float = float("-inf")) -> bool:
    """Whether a pod that was told to end may stop serving before its time as a lame duck is up.

    Args:
        routers: All that it knows.
        now_s: Monotonic seconds.
        direct_s: When the last request came that came by no router, in monotonic seconds.

    Returns:
        True once each router heard from lately has confirmed. False where none is known, or where a client asks the
        pod past the routers: it never confirms, and learns of the pod's end through its Service alone.
    """
    if now_s - direct_s <= DIRECT_SEEN_S:
        return False
    awaited = [router for router in routers if router.lately(now_s)]
    return all(router.drained for router in awaited) and any(router.drained for router in routers)


def lame_duck_s(
    asked_s: float | None, routers: Collection[Seen], now_s: float, direct_s: float = float("-inf")
) -> float:
    """Longest time in seconds that a pod which was told to end goes on taking requests.

    Args:
        asked_s: What it was set to; None is the contract's time where any request came lately, and none elsewhere.
        routers: All that it knows.
        now_s: Monotonic seconds.
        direct_s: When the last request came that came by no router, in monotonic seconds.
    """
    if asked_s is not None:
        return asked_s
    used = now_s - direct_s <= ROUTER_SEEN_S or any(router.lately(now_s) for router in routers)
    return LAME_DUCK_S if used else 0.0


class Routers:
    """The routers that a pod has heard from; used from the event loop alone.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, Seen] = {}
        self._direct_s = float("-inf")

    def asked_directly(self) -> None:
        """A request came by no router."""
        self._direct_s = self._clock()

    def heard(self, name: str) -> None:
        """A request came by this router."""
        before = self._seen.pop(name, None)
        now_s = self._clock()
        # Put last, so that the first is the one that was silent for longest.
        self._seen[name] = Seen(now_s) if before is None else replace(before, heard_s=now_s)
        if len(self._seen) > MOST_ROUTERS:
            del self._seen[next(iter(self._seen))]

    def drained(self, name: str) -> None:
        """This router confirms that nothing new will come from it."""
        self.heard(name)
        self._seen[name] = replace(self._seen[name], drained_s=self._clock())

    @property
    def may_stop(self) -> bool:
        """See the function."""
        return may_stop(self._seen.values(), self._clock(), self._direct_s)

    def lame_duck_s(self, asked_s: float | None) -> float:
        """See the function."""
        return lame_duck_s(asked_s, self._seen.values(), self._clock(), self._direct_s)
