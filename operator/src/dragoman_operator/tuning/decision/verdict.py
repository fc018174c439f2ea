"""Whether a size that is tried does better than the one before it: one rule, with a margin and enough looks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from dragoman_operator.tuning.decision.evidence import evidence
from dragoman_operator.tuning.decision.tally import Bin, Tally

MARGIN = 0.03
"""Difference in pace that counts."""

SURE = 2.0
"""Standard errors that a difference must exceed: chance does so once in twenty times, in either direction."""

LEAST_LOOKS = 8
"""Looks at either size, from which on their spread is believed."""

LEAST_REQUESTS = 50
"""Requests that either size must have ended."""

COMMON = 0.3
"""Share of the looks at the new size at loads that the old one has seen too, so that they can be compared."""

LOST_MORE = 0.01
"""By how much more requests may be lost."""


class Outcome(StrEnum):
    """What a comparison says of the new size."""

    BETTER = "Better"
    ALIKE = "Alike"
    WORSE = "Worse"
    UNSURE = "Unsure"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison says, and why in a sentence."""

    outcome: Outcome
    reason: str


def judge(before: Tally, after: Tally, *, side_by_side: bool) -> Verdict:
    """Compare two sizes by their pace: tokens for each second that a request spends in the pod, its wait included.

    At an equal number of requests in flight that is the throughput of a replica; with equal arrivals it is the inverse
    of the time that a translation takes. So it is right whichever of the two a router or Service keeps equal. Side by
    side all looks are compared; one after the other, those with as many requests in flight, since the load may have
    changed meanwhile. Lost requests count against the new size whatever its pace.

    Args:
        before: What was seen of the size that was there.
        after: What was seen of the one that is tried.
        side_by_side: Whether both ran at the same time and shared the load.
    """
    requests = min(before.finished, after.finished)
    if requests < LEAST_REQUESTS:
        return Verdict(Outcome.UNSURE, f"{requests:.0f} of {LEAST_REQUESTS} requests were seen")
    if (lost := _loses(before, after)) is not None:
        return Verdict(Outcome.WORSE, lost)
    pairs = _pairs(before, after, side_by_side)
    looks = min(sum(one.paced for one, _ in pairs), sum(other.paced for _, other in pairs)) if pairs else 0.0
    if looks < LEAST_LOOKS:
        return Verdict(Outcome.UNSURE, f"{looks:.0f} of {LEAST_LOOKS} looks at equal load were had")
    if sum(other.paced for _, other in pairs) < COMMON * sum(one.paced for one in after.bins.values()):
        return Verdict(Outcome.UNSURE, "the load is another than before")
    gain, error = _difference(pairs)
    said = f"{gain:+.1%} pace, ±{SURE * error:.1%}{_waits(before, after)}"
    if abs(gain) > MARGIN and abs(gain) > SURE * error:
        return Verdict(Outcome.BETTER if gain > 0 else Outcome.WORSE, said)
    # A size may be called alike only where a loss worth mentioning would have shown.
    if gain - SURE * error < -2 * MARGIN:
        return Verdict(Outcome.UNSURE, said)
    return Verdict(Outcome.ALIKE, said)


def _pairs(before: Tally, after: Tally, side_by_side: bool) -> list[tuple[Bin, Bin]]:
    if side_by_side:
        pair = _all(before), _all(after)
        return [pair] if pair[0].paced and pair[1].paced else []
    both = sorted(before.bins.keys() & after.bins.keys())
    pairs = [(before.bins[step], after.bins[step]) for step in both]
    return [(one, other) for one, other in pairs if one.paced > 1 and other.paced > 1 and one.pace > 0]


def _all(tally: Tally) -> Bin:
    total = Bin()
    for one in tally.bins.values():
        total = total.plus(one)
    return total


def _difference(pairs: list[tuple[Bin, Bin]]) -> tuple[float, float]:
    """The relative difference of the paces and its standard error, loads weighted by the looks that they rest on."""
    weights = [one.paced * other.paced / (one.paced + other.paced) for one, other in pairs]
    total, gain, variance = sum(weights), 0.0, 0.0
    for weight, (one, other) in zip(weights, pairs, strict=True):
        share = weight / total
        old, new = one.pace / one.paced, other.pace / other.paced
        if old <= 0:
            continue
        gain += share * (new / old - 1)
        variance += share**2 * (_error_squared(other) + (new / old) ** 2 * _error_squared(one)) / old**2
    return gain, math.sqrt(variance)


def _error_squared(one: Bin) -> float:
    mean = one.pace / one.paced
    spread = max(0.0, one.pace_squares / one.paced - mean**2)
    return spread / max(1.0, one.paced - 1)


def _loses(before: Tally, after: Tally) -> str | None:
    """Whether more requests are lost than chance would have it."""
    if before.lost is None or after.lost is None:
        return None
    asked = before.finished + before.lost, after.finished + after.lost
    old, new = before.lost / asked[0], after.lost / asked[1]
    share = (before.lost + after.lost) / sum(asked)
    error = math.sqrt(share * (1 - share) * (1 / asked[0] + 1 / asked[1]))
    if new - old > LOST_MORE and new - old > SURE * error:
        return f"{new:.1%} of its requests are lost, {old:.1%} before"
    return None


def _waits(before: Tally, after: Tally) -> str:
    """The waits in the queues and the times per token, where the pods say them."""
    old, new = evidence(before, 0.0), evidence(after, 0.0)
    said = ""
    if old.queue_s is not None and new.queue_s is not None:
        said += f"; queue {old.queue_s:.2g} → {new.queue_s:.2g} s"
    if old.token_s is not None and new.token_s is not None:
        said += f"; {1000 * old.token_s:.3g} → {1000 * new.token_s:.3g} ms a token"
    return said
