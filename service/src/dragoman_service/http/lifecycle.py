"""The life of a pod: which phase it is in, and how many requests it holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from dragoman_protocols.errors import DrainingError, EngineDeadError, NotReadyError
from dragoman_service.engine.protocol import Phase, Progress
from dragoman_service.http.draining import Routers, Unfetched


class Lifecycle:
    """One pod's phase and its requests in flight; used from the event loop alone.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began_s = clock()
        self._ready_after_s: float | None = None
        self._progress = Progress(Phase.STARTING)
        self._in_flight = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._given_up: asyncio.Future[None] | None = None
        self.released = asyncio.Event()
        """Set once nobody will send this pod a request any more: ends the time as a lame duck."""
        self.routers = Routers(clock)
        """Those that have sent requests."""
        self.unfetched = Unfetched(clock)
        """Documents that are translated and not fetched."""

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
    def started(self) -> bool:
        """Whether the engine has been ready once."""
        return self._ready_after_s is not None

    @property
    def start_s(self) -> float:
        """Seconds that the start took, or has taken so far."""
        return self._clock() - self._began_s if self._ready_after_s is None else self._ready_after_s

    def report(self, progress: Progress) -> None:
        """Take note of how far the start has come; too late once the pod is ready, draining or failed."""
        if self.phase not in (Phase.READY, Phase.LEAVING, Phase.DRAINING, Phase.FAILED):
            self._progress = progress

    def ready(self) -> None:
        """The engine takes requests from now on."""
        if self.phase in (Phase.DRAINING, Phase.FAILED):
            return
        self._ready_after_s = self._clock() - self._began_s
        self._progress = Progress(Phase.READY, 1.0)

    def leave(self) -> None:
        """Go on admitting, and say that this will end soon; before the engine is ready it changes nothing."""
        if self.phase is Phase.READY:
            self._progress = Progress(Phase.LEAVING)
            self.release()

    def drained(self, router: str) -> None:
        """A router confirms that it sends nothing new; it may do so before this pod is told to end."""
        self.routers.drained(router)
        self.release()

    def release(self) -> None:
        """End the time as a lame duck where all routers have confirmed and no client asks past them."""
        if self.phase is Phase.LEAVING and self.routers.may_stop:
            self.released.set()

    def drain(self) -> None:
        """Admit nothing from routers from now on."""
        if self.phase is not Phase.FAILED:
            self._progress = Progress(Phase.DRAINING)

    def fail(self) -> None:
        """The engine did not start, or died; the pod can only be restarted."""
        self._progress = Progress(Phase.FAILED)

    @property
    def parting_headers(self) -> dict[str, str]:
        """What an answer says beside its own while the pod is about to leave: ask elsewhere next time."""
        return {"Connection": "close"} if self.phase in (Phase.LEAVING, Phase.DRAINING) else {}

    @contextmanager
    def admit(self, direct: bool = False) -> Iterator[None]:
        """Count one request as in flight while it is answered.

        Args:
            direct: It came by no router, and may be served until the drain ends: a router sends a refused request to
                another replica, a direct client can only report it as failed.

        Raises:
            NotReadyError: While the model loads.
            DrainingError: After `drain`; for a direct request after `give_up`, or if the engine was never ready.
            EngineDeadError: After `fail`.
        """
        match self.phase:
            case Phase.READY | Phase.LEAVING:
                pass
            case Phase.DRAINING if direct and self.started and not self.given_up.done():
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
                self._idle.set()

    @property
    def given_up(self) -> asyncio.Future[None]:
        """Done once requests in flight get no more time, and direct ones are refused too."""
        if self._given_up is None:
            self._given_up = asyncio.get_running_loop().create_future()
        return self._given_up

    def give_up(self) -> None:
        """End the drain: requests in flight are cut off, new ones are refused."""
        if not self.given_up.done():
            self.given_up.set_result(None)

    async def until_idle(self, timeout_s: float) -> bool:
        """Wait for the last request in flight; False where `timeout_s` seconds were not enough."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                # A new request may be admitted between the end of the last one and this task's turn.
                while not self._idle.is_set():
                    await self._idle.wait()
        return self._idle.is_set()  # Also where the last one finished in the turn of the time-out.
