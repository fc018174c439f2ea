"""The rules that keep replicas, and the one that lets them go. Shrinking waits: a start that is not needed again
costs nothing, one that is costs every request that comes meanwhile."""

from __future__ import annotations

from dragoman_operator.autoscaling.decision.samples import Rule
from dragoman_operator.autoscaling.decision.scale_up import Situation, Wish, ahead, round_up

SHRINK_EVERY_S = 60.0
"""At most one shrink a minute, of as many replicas as the window allows."""

LEAST_SHARE = 0.03
"""Fewer than this share of a large fleet is not worth a change."""

STUCK_STARTS, STUCK_S = 3.0, 600.0
"""A replica that has been starting for this many times to ready, and for ten minutes, waits for a GPU that is not
there: it no longer keeps the others from shrinking."""


def shrink_or_keep(situation: Situation) -> Wish:
    """Fewer replicas where nothing speaks against it; else as many as there are, with what keeps them."""
    policy, samples = situation.policy, situation.samples
    kept = policy.bounded(samples.desired)
    if kept != samples.desired:
        bounds = f"minReplicas is {policy.min_replicas} and maxReplicas {policy.max_replicas}"
        return Wish(kept, Rule.BOUNDS, f"{kept} replicas: {bounds}")
    if not samples.ready:
        reason = f"held at {kept}: none is ready yet" if kept else "0 replicas: nothing is asked"
        return Wish(kept, Rule.STARTING if kept else Rule.IDLE, reason)
    missing = situation.heard.missing
    if missing:
        reason = f"held at {kept}: {missing} of {samples.ready} replicas give no metrics"
        return Wish(kept, Rule.METRICS, reason)
    if samples.pending and samples.pending_s < max(STUCK_S, STUCK_STARTS * samples.start_s):
        return Wish(kept, Rule.STARTING, f"held at {kept}: {samples.pending} of them are starting")
    return _idle(situation) or _shrink(situation, kept)


def _idle(situation: Situation) -> Wish | None:
    """To zero, where that is allowed and nothing was asked for long enough."""
    policy, asked_at = situation.policy, situation.history.asked_at
    if policy.min_replicas > 0 or asked_at is None:
        return None
    idle_s = situation.now - asked_at
    if situation.in_flight > 0 or situation.samples.silent_routers or idle_s < policy.idle_s:
        return None
    return Wish(0, Rule.IDLE, f"0 replicas: nothing was asked for {idle_s:.0f} s")


def _shrink(situation: Situation, kept: int) -> Wish:
    """Down to the most that the load has asked for within the window, once it was watched for all of it."""
    policy, history, now = situation.policy, situation.history, situation.now
    window_s = history.window_s
    slack_s = policy.tick_s / 2  # ticks are never quite punctual
    peak = history.peak(now - window_s - slack_s)
    asked = f"the load has asked for {peak:.1f} at most in {_in_words(window_s)}"
    needed = policy.bounded(max(1, round_up(peak), _foreseen(situation, max(1, round_up(peak)))))
    if kept - needed < max(1.0, LEAST_SHARE * kept):
        return Wish(kept, Rule.STEADY, f"{kept} replicas: {asked}")
    watched_s = 0.0 if history.watched_since is None else now - history.watched_since
    if watched_s < window_s - slack_s:
        reason = f"held at {kept}: watched for {_in_words(watched_s)} of {_in_words(window_s)}"
        return Wish(kept, Rule.WINDOW, reason)
    if history.shrunk_last is not None and now - history.shrunk_last < SHRINK_EVERY_S:
        return Wish(kept, Rule.WINDOW, f"held at {kept}: it shrank less than a minute ago")
    return Wish(needed, Rule.SHRINK, f"{needed} replicas: {asked}")


def _in_words(time_s: float) -> str:
    return f"{time_s:.0f} s" if time_s < 120 else f"{time_s / 60:.0f} min"


def _foreseen(situation: Situation, there: int) -> int:
    """Replicas that would be asked for again at once: for a queue, or for arrivals that already grow."""
    demand = situation.demand
    if demand is None:
        return 0
    wish = ahead(situation, demand, there)
    replicas = 0 if wish is None else wish.replicas
    if demand.trend is not None:
        coming = demand.trend.ahead(situation.now, situation.samples.start_s) * demand.service_s
        replicas = max(replicas, round_up(coming / situation.policy.concurrency))
    return replicas
