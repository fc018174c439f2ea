"""Exchanges what keys have used with the other routers, every few seconds; counting goes on whatever becomes of it."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from typing import Protocol

from dragoman_router.access.counts import NOTHING, Count, period_of
from dragoman_router.access.limits import Account
from dragoman_router.errors import ClusterError, ClusterRefusedError, SharedUsageError
from dragoman_router.metrics import Metrics
from dragoman_router.usage.shared import MOST_BYTES, parsed, rendered, size_bytes
from dragoman_router.usage.shares import IDLE, Pace, Sighting, sighted, silent, smoothed
from dragoman_router.usage.standing import FORGOTTEN_S, Standing, accepted, counted, heard, left, proposed

log = logging.getLogger(__name__)

BEAT_LOOKS = 3
"""A router with nothing to say writes every third look, so that the others know that it is there."""
SILENT_LOOKS = 10
"""One that wrote nothing for ten looks no longer counts."""
BYTES_A_LOOK = 64 * 1024
"""A larger object is looked at less often: what all write into etcd stays within this much for each and interval."""
CONFLICTS = 5
"""Others may be first so often before this router waits for its next look."""
FIRST_LOOK_S = 10.0
"""For so long a start waits for an API server that does not answer."""
AGAIN_S = 0.2
LEAVING_S = 5.0


class Found(Protocol):
    """What was read."""

    @property
    def version(self) -> str:
        """Of the object."""

    @property
    def data(self) -> Mapping[str, str]:
        """Its entries."""


class Store(Protocol):
    """Where the shared object is."""

    async def read(self) -> Found | None:
        """As it is now; None where there is none."""

    async def write(self, base: str | None, data: Mapping[str, str]) -> str | None:
        """Replace the version `base`, or make the object; its version, or None where another was there."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How usage is counted and shared.

    Args:
        router_id: This router's name.
        interval_s: Between two looks.
        first_day: Of the month on which periods begin.
    """

    router_id: str
    interval_s: float
    first_day: int


def _today() -> datetime:
    return datetime.now(UTC)


class Publisher:
    """Counts by period, and shares the counts.

    Args:
        accounts: What keys have used, by their names.
        store: None shares nothing.
        terms: How.
        metrics: Told how it goes.
        clock: Monotonic seconds.
        today: The time in UTC.
    """

    def __init__(
        self,
        accounts: Mapping[str, Account],
        store: Store | None,
        terms: Terms,
        metrics: Metrics,
        clock: Callable[[], float],
        today: Callable[[], datetime] = _today,
    ) -> None:
        self._accounts, self._store, self._terms = accounts, store, terms
        self._metrics, self._clock, self._today = metrics, clock, today
        self._chance = Random()
        self._period = period_of(today().date(), terms.first_day)
        self._standing = Standing(f"{terms.router_id}.{secrets.token_hex(4)}")
        self._sightings: dict[str, Sighting] = {}
        self._elsewhere: dict[str, Count] = {}
        self._live = 0
        self._paces: dict[str, Pace] = {}
        self._read_s = self._exchanged_s = clock()
        self._wrote_s = float("-inf")
        self._size_bytes = 0
        self._trouble = ""
        self._left_out = 0
        if store is not None:
            metrics.usage_age.set_function(lambda: clock() - self._exchanged_s)
        metrics.usage_routers.set_function(lambda: self.live)

    @property
    def pause_s(self) -> float:
        """Between two looks, as large as the object is now."""
        return self._terms.interval_s * max(1.0, self._size_bytes / BYTES_A_LOOK)

    @property
    def live(self) -> int:
        """Routers that share, this one included."""
        others = self._sightings.keys() - {self._standing.run}
        return 1 + len(others - self._silent(SILENT_LOOKS * self.pause_s))

    async def begin(self) -> None:
        """Find out what was used before; a start waits for it, but not for ever, and not where it is refused."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_S):
                while await self._tried() is False:  # noqa: ASYNC110 - the API server sets no event
                    await asyncio.sleep(AGAIN_S)

    async def run(self) -> None:
        """Look and publish until cancelled."""
        while True:
            await asyncio.sleep(self.pause_s * self._chance.uniform(0.9, 1.1))
            await self._tried()

    async def leave(self) -> None:
        """Publish what is left, and no longer be there."""
        if self._store is None:
            return
        with suppress(TimeoutError, ClusterError, SharedUsageError):
            async with asyncio.timeout(LEAVING_S):
                await self.look()
                standing = self._standing
                if not standing.news and standing.version is not None:
                    # Refused where somebody was first: the entry then goes as one that fell silent.
                    await self._store.write(standing.version, rendered(left(standing)))

    async def look(self) -> None:
        """Collect, read, write if there is something to say.

        Raises:
            ClusterError: The API server gave no answer.
            SharedUsageError: The object is not understood.
        """
        if self._store is None:
            self._collect()
            return
        try:
            for _ in range(CONFLICTS):
                if await self._exchanged(self._store):
                    return
                await asyncio.sleep(self._chance.uniform(0, 0.1 * self._terms.interval_s))
        except (ClusterError, SharedUsageError):
            self._collect()
            raise

    async def _tried(self) -> bool | None:
        """Whether a look went well; None where another like it will not."""
        try:
            await self.look()
        except (ClusterError, SharedUsageError) as error:
            if (said := str(error)) != self._trouble:
                log.warning("keys' usage is not shared for now, and goes on being counted: %s", said)
            self._trouble = said
            return (
                False
                if isinstance(error, ClusterError) and not isinstance(error, ClusterRefusedError)
                else None
            )
        if self._trouble:
            log.info("keys' usage is shared again")
        self._trouble = ""
        return True

    async def _exchanged(self, store: Store) -> bool:
        """One reading, and one writing if needed; whether nobody was first."""
        found = await store.read()
        if found is None:
            shared = None
        elif found.version == self._standing.version:
            shared = self._standing.shared
        else:
            shared = parsed(found.data)
        now_s = self._clock()
        self._standing = heard(self._standing, None if found is None else found.version, shared, now_s)
        self._size_bytes = 0 if found is None else size_bytes(found.data)
        if shared is not None:
            self._sightings = sighted(self._sightings, shared.routers, now_s)
        self._collect()
        self._share(now_s)
        standing = proposed(self._standing, now_s, self._silent(FORGOTTEN_S))
        attempt = standing.attempt
        beat = now_s - self._wrote_s >= BEAT_LOOKS * self.pause_s
        if attempt is not None and (beat or attempt.brings):
            self._standing = standing
            version = await store.write(attempt.base, rendered(attempt.shared))
            if version is None:
                return False
            self._standing = accepted(self._standing, version)
            self._wrote_s = now_s
            self._say_left_out()
        self._exchanged_s = now_s
        return True

    def _collect(self) -> None:
        """Take what accounts counted, turn the period where it is time, and tell them what all have used."""
        new = {
            name: count for name, account in self._accounts.items() if (count := account.collect()) != NOTHING
        }
        self._standing = counted(self._standing, self._period, new)
        period = period_of(self._today().date(), self._terms.first_day)
        if period != self._period:
            log.info("a new period begins: keys' usage counts from %s", period)
            self._period, self._elsewhere = period, {}
        totals = self._standing.totals(period)
        for name, account in self._accounts.items():
            account.tell(totals.get(name, NOTHING))

    def _share(self, now_s: float) -> None:
        """Find out how fast the others use each key, and leave them their part of its rates."""
        before, elapsed_s = self._elsewhere, now_s - self._read_s
        if elapsed_s <= 0:
            return
        live, known = self.live, self._live
        self._read_s, self._live, self._elsewhere = now_s, live, {}
        for name, account in self._accounts.items():
            if not account.limits.rated:
                continue
            now = self._elsewhere[name] = self._standing.elsewhere(self._period, name)
            # Where nothing is known of before, all of it may be old.
            more = now.less(before.get(name, now))
            pace = self._paces.get(name, IDLE)
            if more == NOTHING and pace == IDLE and live == known:
                continue
            seen = Pace(*(max(0, each) / elapsed_s for each in more))
            pace = self._paces[name] = smoothed(pace, seen)
            account.share(pace, live, now_s)

    def _say_left_out(self) -> None:
        names = {name for counts in self._standing.news.values() for name in counts}
        if len(names) != self._left_out:
            self._left_out = len(names)
            log.warning(
                "the usage of %d keys is not shared: %d bytes of the ConfigMap are taken",
                len(names),
                MOST_BYTES,
            )

    def _silent(self, for_s: float) -> frozenset[str]:
        return silent(self._sightings, self._standing.run, self._clock(), for_s)
