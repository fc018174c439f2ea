"""Where one router stands in what all share: what it has counted, and how much of that the others know.

Totals are shared, and each router adds what it has counted since: one conditional write, which the API server refuses
where somebody else was first. A write whose answer is lost may have landed. So each carries its router's number, in
the same object: where that number is found, the write has landed, and what it brought is never added again.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace

from dragoman_router.access.counts import NOTHING, Count, Counts, Periods, added, beyond, newest
from dragoman_router.usage.shared import MOST_BYTES, Shared, joined, present

FORGOTTEN_S = 600.0
"""A run of a router that has written nothing for so long loses its entry; it has been killed, or is cut off."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A write whose outcome is not known.

    Args:
        base: Version that it replaces; None makes the object.
        number: That it leaves with the router's run.
        shared: What it writes.
        brings: What of this router's news is in that.
        at_s: Monotonic seconds.
    """

    base: str | None
    number: int
    shared: Shared
    brings: Periods
    at_s: float


@dataclass(frozen=True, slots=True)
class Standing:
    """Where one run of a router stands.

    Args:
        run: Its name, which no other run ever had.
        news: What it has counted and nobody else knows.
        confirmed: What it has counted and is in `shared`.
        number: Of its last write.
        version: Of what was read last; None where there was nothing.
        shared: What was read last, or written since.
        attempt: A write whose outcome is not known.
    """

    run: str
    news: Periods = field(default_factory=dict)
    confirmed: Periods = field(default_factory=dict)
    number: int = 0
    version: str | None = None
    shared: Shared = field(default_factory=Shared)
    attempt: Attempt | None = None

    def totals(self, period: str) -> Counts:
        """What keys have used at all routers, as far as it is known here."""
        return added(self.shared.periods, {period: self.news.get(period, {})})[period]

    def elsewhere(self, period: str, name: str) -> Count:
        """What a key has used at other routers; below nothing where somebody has lowered its figure."""
        ours = self.confirmed.get(period, {}).get(name, NOTHING)
        return self.shared.periods.get(period, {}).get(name, NOTHING).less(ours)


def counted(standing: Standing, period: str, counts: Counts) -> Standing:
    """More was counted here."""
    return replace(standing, news=newest(added(standing.news, {period: counts}))) if counts else standing


def heard(standing: Standing, version: str | None, shared: Shared | None, now_s: float) -> Standing:
    """The object was read.

    Args:
        standing: Before.
        version: Of the object; None where there is none.
        shared: What it says; None where there is none. What was known then stays, to be written anew.
        now_s: Monotonic seconds.
    """
    attempt = standing.attempt
    if attempt is not None:
        said = None if shared is None else shared.routers.get(standing.run)
        # An entry that others took away may have told of it; then rather lost than counted twice.
        perhaps = shared is not None and said is None and now_s - attempt.at_s >= 0.9 * FORGOTTEN_S
        if said == attempt.number or (perhaps and version != attempt.base):
            standing = _landed(standing, attempt)
        elif version != attempt.base:
            # What it would replace is no longer there: it can never land.
            standing = replace(standing, attempt=None)
    return replace(standing, version=version, shared=standing.shared if shared is None else shared)


def proposed(
    standing: Standing, now_s: float, gone: Set[str] = frozenset(), most_bytes: int = MOST_BYTES
) -> Standing:
    """Something to write: the same again where an attempt may yet land, else all that is new.

    Args:
        standing: After the object was read.
        now_s: Monotonic seconds.
        gone: Runs of routers whose entries go.
        most_bytes: That the object may have.
    """
    if standing.attempt is not None:
        return standing
    number = standing.number + 1
    routers = {**present(standing.shared.routers, gone), standing.run: number}
    shared, brings = joined(standing.shared, standing.news, routers, most_bytes)
    return replace(standing, number=number, attempt=Attempt(standing.version, number, shared, brings, now_s))


def accepted(standing: Standing, version: str) -> Standing:
    """The attempt has landed, and made this version."""
    attempt = standing.attempt
    if attempt is None:
        return standing
    return replace(_landed(standing, attempt), version=version, shared=attempt.shared)


def _landed(standing: Standing, attempt: Attempt) -> Standing:
    return replace(
        standing,
        news=beyond(standing.news, attempt.brings),
        confirmed=newest(added(standing.confirmed, attempt.brings)),
        attempt=None,
    )


def left(standing: Standing) -> Shared:
    """What is shared, without this run."""
    return replace(standing.shared, routers=present(standing.shared.routers, {standing.run}))
