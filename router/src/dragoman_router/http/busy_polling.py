"""Busy polling: after a request, the event loop polls for events without sleeping for a while.

Busy polling avoids wake-up latency: a sleeping processor lowers its clock, its caches go cold, and a virtual machine's
core is given to others meanwhile. haproxy has `busy-polling` for the same reason
(https://docs.haproxy.org/2.8/configuration.html#3.2-busy-polling).
"""

from __future__ import annotations

from asyncio import AbstractEventLoop


class BusyPolling:
    """Keeps an event loop awake; used from that loop alone.

    Args:
        for_s: Seconds after the last request.
    """

    def __init__(self, for_s: float, loop: AbstractEventLoop) -> None:
        self._for_s = for_s
        self._loop = loop
        self._until_s = 0.0
        self._polling = False

    def extend(self) -> None:
        """A request arrived."""
        self._until_s = self._loop.time() + self._for_s
        if not self._polling:
            self._polling = True
            self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        # A loop with something to call does not block while it polls for events.
        if self._loop.time() < self._until_s:
            self._loop.call_soon(self._turn)
        else:
            self._polling = False
