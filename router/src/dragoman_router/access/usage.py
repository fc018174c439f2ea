"""Reserves and reports what keys use: in the state that routers share while it answers, else in this router."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Protocol

from dragoman_router.access.accounts import Account, Charge, Counter
from dragoman_router.errors import StateError, StateRefusedError

log = logging.getLogger(__name__)

DAY_S = 86_400


class SharedUsage(Counter, Protocol):
    """Usage and rates of all routers together."""

    @property
    def available(self) -> bool:
        """Whether the server answered the last time."""
        ...

    async def reserve(self, account: Account, period: str, characters: int) -> int:
        """Admit one request and charge its characters.

        Returns:
            The characters that are charged then, those that are not sent yet included.

        Raises:
            RateLimitedError: The rate is exceeded.
            QuotaError: The quota is used up.
            StateError: There was no answer; the reservation may have been made.
            StateRefusedError: It was refused, and not made.
        """
        ...

    async def used(self, account: Account, period: str) -> int:
        """The characters that are charged.

        Raises:
            StateError: There was no answer.
        """
        ...


def period_of(today: date, first_day: int) -> str:
    """The period of a day: the date of its own first day.

    Args:
        today: In UTC.
        first_day: Of the month on which periods begin, 1 to 28.
    """
    if today.day >= first_day:
        return today.replace(day=first_day).isoformat()
    year, month = (today.year, today.month - 1) if today.month > 1 else (today.year - 1, 12)
    return date(year, month, first_day).isoformat()


class Calendar:
    """The current period; worked out once a day, because each request needs it.

    Args:
        first_day: Of the month on which periods begin, 1 to 28.
    """

    def __init__(self, first_day: int, seconds: Callable[[], float] = time.time) -> None:
        self._first_day, self._seconds = first_day, seconds
        self._period, self._until_s = "", 0.0

    @property
    def period(self) -> str:
        """Its first day, such as `2026-11-01`."""
        now_s = self._seconds()
        if now_s >= self._until_s:
            self._until_s = now_s - now_s % DAY_S + DAY_S
            before, self._period = (
                self._period,
                period_of(datetime.fromtimestamp(now_s, UTC).date(), self._first_day),
            )
            if before and self._period != before:
                log.info("a new period begins: usage of keys counts from %s", self._period)
        return self._period


class AccountUsage:
    """Usage of accounts.

    Args:
        shared: AccountUsage of all routers; None: this router counts for itself, since its start.
    """

    def __init__(
        self, calendar: Calendar, clock: Callable[[], float], shared: SharedUsage | None = None
    ) -> None:
        self._calendar, self._clock, self._shared = calendar, clock, shared
        self._reserving: set[asyncio.Task[Charge]] = set()
        """The event loop itself keeps no task."""

    async def reserve(self, account: Account, characters: int) -> Charge:
        """Admit one request; only an account with limits waits for the shared state. See `Account.reserve`."""
        account.begin(self._calendar.period)
        shared = self._shared
        counter = shared if account.counted else None
        if shared is None or not (shared.available and account.limits.limited):
            return account.reserve(characters, self._clock(), counter)
        # In a task of its own: where the client disconnects, the answer tells whether there is anything to give back.
        reserving = asyncio.create_task(self._reserve_shared(shared, account, characters, counter))
        self._reserving.add(reserving)
        reserving.add_done_callback(self._reserving.discard)
        try:
            return await asyncio.shield(reserving)
        except asyncio.CancelledError:
            reserving.add_done_callback(_give_back)
            raise

    async def _reserve_shared(
        self, shared: SharedUsage, account: Account, characters: int, counter: Counter | None
    ) -> Charge:
        period = account.period
        try:
            charged = await shared.reserve(account, period, characters)
        except StateRefusedError:
            return account.reserve(characters, self._clock(), counter)
        except StateError:
            # The reservation may have been made: counted as made, usage is rather lost than counted twice.
            account.take(characters, self._clock())
            account.charge(period, characters)
        else:
            if period == account.period:
                account.characters = charged
        return Charge(account, characters, counter, shared=True)

    async def take_shared(self, account: Account) -> None:
        """Take one request from an account's rate at all routers together; nothing without shared state.

        Raises:
            RateLimitedError: The rate is exceeded.
        """
        if self._shared is not None and self._shared.available:
            with suppress(StateError):  # This router's own rate holds.
                await self._shared.reserve(account, self._calendar.period, 0)

    async def used(self, account: Account) -> int:
        """Characters of this period."""
        period = self._calendar.period
        account.begin(period)
        if self._shared is not None and self._shared.available:
            try:
                account.characters = await self._shared.used(account, period)
            except StateError as error:
                log.debug("usage as this router last knew it: %s", error)
        return account.characters


def _give_back(reserving: asyncio.Task[Charge]) -> None:
    """Give back what was reserved for a client that has disconnected."""
    if not reserving.cancelled() and reserving.exception() is None:
        reserving.result().settle(0)
