"""The rules that ask for more replicas. Growing is at once: a wait that has begun is not undone."""

from __future__ import annotations

from dragoman_operator.autoscaling.decision.samples import Rule
from dragoman_operator.autoscaling.decision.wish import FULL, Situation, Wish, ahead, in_words, round_up

TOLERANCE = 0.1
"""A tenth over the target adds nothing: it is within what a replica more or less would change."""

SURGE_S = 60.0
SURGE_FACTOR, SURGE_REPLICAS = 10, 16
"""Within a minute at most to ten times the replicas that were there, or sixteen more: a wrong figure must not ask
for a thousand GPUs. HPA's default, four doublings a minute, is as wide."""


def grow(situation: Situation) -> Wish | None:
    """The rule that wants most, where it wants more than there are."""
    samples = situation.samples
    there = max(samples.desired, samples.ready + samples.pending)
    wishes = [_load(situation, there), _memory(situation, there)]
    if not samples.ready:
        wishes.append(_wake(situation))
    elif situation.demand is not None:
        wishes.append(ahead(situation, situation.demand, there))
    best = max((wish for wish in wishes if wish), key=lambda wish: wish.replicas, default=None)
    if best is None or best.replicas <= there:
        return None
    best = _bounded(situation, best)
    return best if best.replicas > samples.desired else None


def _load(situation: Situation, there: int) -> Wish | None:
    """Enough replicas for each to have no more than the target concurrency.

    What the arrivals keep running counts, where that is known, and else what is in flight.
    """
    policy, demand = situation.policy, situation.demand
    if demand is not None:
        at_once = demand.sure_per_s * demand.service_s
        what = f"{in_words(demand.sure_per_s, demand.service_s)} are {at_once:.0f} at once"
    elif situation.samples.ready:
        at_once = situation.in_flight
        what = f"{at_once:.0f} requests are running or waiting"
    else:
        return None
    wanted = at_once / policy.concurrency
    if wanted <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(wanted)
    return Wish(replicas, Rule.LOAD, f"{replicas} replicas: {what}, at {policy.concurrency:g} a replica")


def _memory(situation: Situation, there: int) -> Wish | None:
    """Enough replicas for the KV caches to be no fuller than their target."""
    wanted = situation.by_memory
    if wanted is None or wanted <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(wanted)
    reason = (
        f"{replicas} replicas: the KV caches are {situation.heard.kv_usage:.0%} full, "
        f"the target is {situation.policy.target_kv_cache_usage:.0%}"
    )
    return Wish(replicas, Rule.MEMORY, reason)


def _wake(situation: Situation) -> Wish | None:
    """From zero: somebody waits at the router.

    As many as those held ask for, but where it is known how long a request takes no more than what comes keeps busy,
    and one for those who will have waited.
    """
    samples, policy, demand = situation.samples, situation.policy, situation.demand
    if samples.desired or samples.held <= 0:
        return None
    replicas = max(1, round_up(samples.held / policy.concurrency))
    if demand is not None:
        busy = round_up(demand.sure_per_s * demand.service_s / (FULL * policy.max_num_seqs))
        replicas = min(replicas, 1 + busy)
    return Wish(replicas, Rule.WAKE, f"{replicas} replicas: the router holds {samples.held:.0f} requests")


def _bounded(situation: Situation, wish: Wish) -> Wish:
    """No more than the maximum, nor than one minute may add."""
    highest = situation.policy.max_replicas
    if wish.replicas > highest:
        wish = Wish(highest, wish.rule, f"{wish.reason}; maxReplicas is {highest}")
    began = min([situation.samples.desired, *(count for _, count in situation.history.grown)])
    surge = max(SURGE_FACTOR * began, began + SURGE_REPLICAS)
    if wish.replicas > surge:
        return Wish(
            surge, Rule.SURGE, f"{wish.reason}; within a minute no further than from {began} to {surge}"
        )
    return wish
