"""Leading while the Lease is ours: of several operators, one acts."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime

from dragoman_operator.controller.lease import Sighting, claimed, may_claim, sight
from dragoman_operator.errors import ClusterError
from dragoman_operator.kube import Kube
from dragoman_operator.observed.snapshot import LEASE
from dragoman_operator.settings import Settings

log = logging.getLogger(__name__)


class Leadership:
    """Takes, renews and gives back one Lease.

    Three times protect from two leaders: a holder stops acting `lease_renew_deadline_s` after it began its
    last successful renewal; its last writes end at `lease_duration_s`; no other operator takes the Lease before
    it has seen it unchanged for `lease_duration_s`.

    Leadership never comes back once the deadline has passed, even if the Lease is still ours: writes were refused
    since, so `lead` starts anew and lists all objects again.

    Args:
        kube: The API server.
        settings: The Lease's name, times and our identity.
        namespace: The Lease's namespace.
        clock: Seconds of a monotonic clock.
    """

    def __init__(
        self, kube: Kube, settings: Settings, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._namespace = namespace
        self._clock = clock
        self._deadline = float("-inf")
        self._sighting: Sighting | None = None
        self._taken = False
        self.contacted = False
        """Whether the API server has answered about the Lease at least once."""

    def holds(self) -> bool:
        """Whether we may act."""
        return self._clock() < self._deadline

    def write_budget_s(self) -> float:
        """Seconds within which a write that begins now must have ended; 0 where none may begin."""
        if not self.holds():
            return 0.0
        margin_s = self._settings.lease_duration_s - self._settings.lease_renew_deadline_s
        return self._deadline + margin_s - self._clock()

    async def run(self, lead: Callable[[], Awaitable[None]]) -> None:
        """Lead whenever the Lease is ours, until cancelled; the Lease is then given back.

        Args:
            lead: Acts until cancelled. It is started when the Lease is taken, and has ended before another
                attempt to take it is made.
        """
        try:
            while True:
                await self._until_held()
                log.info("leading as %s", self._settings.identity)
                leading = asyncio.ensure_future(lead())
                try:
                    await self._while_held(leading)
                finally:
                    leading.cancel()
                    await asyncio.wait([leading])
                    self._deadline = float("-inf")
                if not leading.cancelled() and (error := leading.exception()):
                    raise error
                log.warning("no longer leading: the Lease was lost")
        finally:
            await self._release()

    async def _until_held(self) -> None:
        while True:
            if await self._attempt():
                return
            await asyncio.sleep(self._settings.lease_retry_s)

    async def _while_held(self, leading: asyncio.Future[None]) -> None:
        while self.holds() and not leading.done():
            await asyncio.wait([leading], timeout=self._settings.lease_retry_s)
            if leading.done() or not self.holds():
                return
            if not await self._attempt() and self._taken:
                return

    async def _attempt(self) -> bool:
        """Try once to take or renew the Lease; False where it is another's or the server does not answer."""
        began, leading = self._clock(), self.holds()
        self._taken = False
        name, identity = self._settings.lease_name, self._settings.identity
        try:
            async with asyncio.timeout(self._settings.lease_renew_deadline_s / 2):
                lease = await self._kube.get(LEASE, self._namespace, name)
                self.contacted = True
                if lease is not None:
                    self._sighting = sight(lease, self._sighting, self._clock())
                    if not may_claim(lease, self._sighting, identity, self._clock()):
                        self._taken = True
                        return False
                ours = claimed(
                    lease,
                    name,
                    self._namespace,
                    identity,
                    self._settings.lease_duration_s,
                    datetime.now(UTC),
                )
                await (self._kube.replace if lease else self._kube.create)(LEASE, ours)
        except (ClusterError, TimeoutError) as error:
            log.warning("the Lease was not renewed: %s", str(error) or "no answer in time")
            return False
        if leading and not self.holds():
            log.warning("the Lease was renewed after its deadline")
            return False
        self._deadline = began + self._settings.lease_renew_deadline_s
        return True

    async def _release(self) -> None:
        """Empty the Lease, so that the next operator need not wait for it to expire."""
        name = self._settings.lease_name
        with suppress(ClusterError, TimeoutError):
            async with asyncio.timeout(2):
                lease = await self._kube.get(LEASE, self._namespace, name)
                if lease and (lease.get("spec") or {}).get("holderIdentity") == self._settings.identity:
                    empty = claimed(lease, name, self._namespace, "", 1, datetime.now(UTC))
                    await self._kube.replace(LEASE, empty)
