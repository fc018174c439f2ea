"""The life of a pod: its phase, its requests in flight, and when it may end.

The end is the pod's half of the agreement in `dragoman_contract.routing`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from dragoman_contract.routing import LAME_DUCK_S, ROUTER_SEEN_S
from dragoman_protocols.errors import DrainingError, EngineDeadError, NotReadyError
from dragoman_service.engine.protocol import Phase, Progress

IN_TRANSIT_S = 1.0
"""Requests that a router sent before its confirmation may arrive this long after it; later ones revoke it."""

MAX_ROUTERS = 256
"""Routers that are remembered: a client could make names up."""

DIRECT_SEEN_S = 10.0
"""A direct client without a request for this time is not expected back. Longer than a kube-proxy takes to learn that an
endpoint is gone, and than the pauses of a client with steady load on a kept connection."""

FETCH_S = 12.0
"""Time for which an unfetched result delays the pod's end: DeepL's clients poll every five seconds."""


class Unfetched:
    """Results that clients are about to fetch: a pod that ends waits for them, for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until_s: dict[str, float] = {}
        self._none = asyncio.Event()

    def __len__(self) -> int:
        now_s = self._clock()
        return sum(until_s > now_s for until_s in self._until_s.values())

    def put(self, key: str) -> None:
        """Add a result."""
        now_s = self._clock()
        self._until_s = {each: until_s for each, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[key] = now_s + FETCH_S
        self._none.clear()

    def fetched(self, key: str) -> None:
        """Remove a result, which was fetched."""
        if self._until_s.pop(key, None) is not None and not self._until_s:
            self._none.set()

    def forget(self) -> None:
        """Remove all."""
        self._until_s.clear()
        self._none.set()

    async def until_none(self, timeout_s: float) -> bool:
        """Wait until all are fetched, or too old; False if `timeout_s` seconds were not enough."""
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


@dataclass
class SeenRouter:
    """What a pod knows of one router.

    Args:
        request_s: Arrival of its last request, in monotonic seconds.
        drained_s: When it confirmed that it sends nothing new, or None.
    """

    request_s: float
    drained_s: float | None = None

    @property
    def drained(self) -> bool:
        """Whether it sends nothing new."""
        return self.drained_s is not None and self.request_s <= self.drained_s + IN_TRANSIT_S


class Routers:
    """The routers whose requests a pod received; used from the event loop alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, SeenRouter] = {}
        self._direct_s = float("-inf")

    def record_direct(self) -> None:
        """A request came by no router."""
        self._direct_s = self._clock()

    def record(self, name: str) -> SeenRouter:
        """A request came by this router."""
        router = self._seen.pop(name, None) or SeenRouter(0.0)
        router.request_s = self._clock()
        # Put last, so that the first is the one without requests for longest.
        self._seen[name] = router
        if len(self._seen) > MAX_ROUTERS:
            del self._seen[next(iter(self._seen))]
        return router

    def drained(self, name: str) -> None:
        """This router confirms that it sends nothing new."""
        self.record(name).drained_s = self._clock()

    @property
    def may_stop(self) -> bool:
        """Whether a pod may stop serving before its time as a lame duck is up: each recent router has confirmed.

        False if none is known, or if a client sends requests directly: it never confirms, and learns of the pod's end
        through its Service alone.
        """
        now_s = self._clock()
        if now_s - self._direct_s <= DIRECT_SEEN_S:
            return False
        known = self._seen.values()
        awaited = [router for router in known if now_s - router.request_s <= ROUTER_SEEN_S]
        return all(router.drained for router in awaited) and any(router.drained for router in known)

    def lame_duck_s(self, configured_s: float | None) -> float:
        """Maximum seconds for which a pod accepts requests after SIGTERM.

        Args:
            configured_s: The setting; None is the contract's time if there were requests lately, else 0.
        """
        if configured_s is not None:
            return configured_s
        last_s = max([self._direct_s, *(router.request_s for router in self._seen.values())])
        return LAME_DUCK_S if self._clock() - last_s <= ROUTER_SEEN_S else 0.0


class Lifecycle:
    """One pod's phase and its requests in flight; used from the event loop alone."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_s = clock()
        self._ready_after_s: float | None = None
        self._progress = Progress(Phase.STARTING)
        self.phases_s: dict[str, float] = {Phase.STARTING: 0.0}
        """When each phase of the start began, in seconds since the pod's start."""
        self._in_flight = 0
        self._idle_since_s = self._started_s
        self._idle = asyncio.Event()
        self._idle.set()
        self.given_up = False
        """Whether requests in flight get no more time, and direct ones are refused too."""
        self.cut_off: set[Callable[[], object]] = set()
        """Called when `given_up` is set."""
        self.released = asyncio.Event()
        """Set once no more requests are expected: ends the time as a lame duck."""
        self.routers = Routers(clock)
        """Those whose requests were received."""
        self.unfetched = Unfetched(clock)
        """Translated documents that were not fetched."""

    @property
    def progress(self) -> Progress:
        """The phase, and how much of it is done."""
        return self._progress

    @property
    def phase(self) -> Phase:
        """The phase alone."""
        return self._progress.phase

    @property
    def in_flight(self) -> int:
        """Requests admitted and not finished."""
        return self._in_flight

    @property
    def idle_s(self) -> float:
        """Seconds since the last request, or since the pod is ready; 0 while there are requests or it is not ready."""
        if self._in_flight or self.phase is not Phase.READY:
            return 0.0
        return self._clock() - self._idle_since_s

    @property
    def started(self) -> bool:
        """Whether the engine has been ready once."""
        return self._ready_after_s is not None

    @property
    def start_s(self) -> float:
        """Seconds that the start took, or has taken so far."""
        return self._clock() - self._started_s if self._ready_after_s is None else self._ready_after_s

    def report(self, progress: Progress) -> None:
        """Set the progress of the start; ignored once the pod is ready, draining or failed."""
        if self.phase not in (Phase.READY, Phase.LEAVING, Phase.DRAINING, Phase.FAILED):
            self._progress = progress
            self._note(progress.phase)

    def _note(self, phase: Phase) -> None:
        self.phases_s.setdefault(phase, round(self._clock() - self._started_s, 2))

    def ready(self) -> None:
        """The engine accepts requests from now on."""
        if self.phase in (Phase.DRAINING, Phase.FAILED):
            return
        self._idle_since_s = self._clock()
        self._ready_after_s = self._idle_since_s - self._started_s
        self._progress = Progress(Phase.READY, 1.0)
        self._note(Phase.READY)

    def leave(self) -> None:
        """Go on admitting as a lame duck; before the engine is ready it changes nothing."""
        if self.phase is Phase.READY:
            self._progress = Progress(Phase.LEAVING)
            self.release()

    def drained(self, router: str) -> None:
        """A router confirms that it sends nothing new; it may do so before SIGTERM."""
        self.routers.drained(router)
        self.release()

    def release(self) -> None:
        """End the time as a lame duck if all routers have confirmed and no client sends requests directly."""
        if self.phase is Phase.LEAVING and self.routers.may_stop:
            self.released.set()

    def drain(self) -> None:
        """Admit nothing from routers from now on."""
        if self.phase is not Phase.FAILED:
            self._progress = Progress(Phase.DRAINING)

    def fail(self) -> None:
        """The engine did not start, or died; the pod can only be restarted."""
        self._progress = Progress(Phase.FAILED)

    def closes_connections(self) -> bool:
        """Whether each answer ends its connection: the next request needs a new one."""
        return self.phase in (Phase.LEAVING, Phase.DRAINING)

    @contextmanager
    def admit(self, direct: bool = False) -> Iterator[None]:
        """Count one request as in flight while it is answered.

        Args:
            direct: Whether it came by no router. It is served until the drain ends: a router sends a refused
                request to another replica, a direct client can only report it as failed.

        Raises:
            NotReadyError: While the model loads.
            DrainingError: After `drain`; for a direct request after `give_up`, or if the engine was never ready.
            EngineDeadError: After `fail`.
        """
        match self.phase:
            case Phase.READY | Phase.LEAVING:
                pass
            case Phase.DRAINING if direct and self.started and not self.given_up:
                pass
            case Phase.DRAINING:
                raise DrainingError("this replica is shutting down; ask another one")
            case Phase.FAILED:
                raise EngineDeadError("the engine of this replica is gone; it is about to be restarted")
            case phase:
                raise NotReadyError(f"the model is not ready yet (phase: {phase})", retry_after_s=5)
        self._in_flight += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self._idle_since_s = self._clock()
                self._idle.set()

    def give_up(self) -> None:
        """End the drain: requests in flight are cut off, new ones are refused."""
        self.given_up = True
        while self.cut_off:
            self.cut_off.pop()()

    async def until_idle(self, timeout_s: float) -> bool:
        """Wait for the last request in flight; False where `timeout_s` seconds were not enough."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                # A new request may be admitted between the end of the last one and this task's turn.
                while not self._idle.is_set():
                    await self._idle.wait()
        return self._idle.is_set()  # Also where the last one finished in the turn of the time-out.
