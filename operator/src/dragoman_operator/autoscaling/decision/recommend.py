"""The decision: what was heard, what it asks for, which rule has the last word, and what to remember."""

from __future__ import annotations

from dataclasses import replace

from dragoman_operator.autoscaling.decision.history import PEAK_EVERY_S, History
from dragoman_operator.autoscaling.decision.observe import Heard, demand, listen, remember
from dragoman_operator.autoscaling.decision.policy import LONGEST_WINDOW_S, Policy
from dragoman_operator.autoscaling.decision.samples import Decision, Rule, Samples, Signals
from dragoman_operator.autoscaling.decision.scale_down import shrink_or_keep
from dragoman_operator.autoscaling.decision.scale_up import SURGE_S, Situation, Wish, grow


def recommend(policy: Policy, samples: Samples, history: History, now: float) -> Decision:
    """How many replicas there should be now.

    Pure: the same arguments give the same answer, and the order of the samples does not matter.

    Args:
        policy: Bounds and targets.
        samples: The deployment as it is.
        history: What the last call returned; `History()` at first.
        now: Unix seconds, never less than at the last call.

    Returns:
        The number, between the policy's bounds, with its reason and the history for the next call.
    """
    heard = listen(samples, policy, now)
    history = _learn(policy, samples, history, now)
    if heard.missing * 2 > samples.ready:
        return _hold_blind(policy, samples, heard, history)
    history = remember(history, samples, heard, policy, now)
    found = demand(history, heard)
    if found is not None:
        by_load = found.per_s * found.service_s / policy.concurrency
        history = replace(history, service_s=found.service_s)
    else:  # what the router holds for replicas that start is no measure of how many
        by_load = (
            heard.running + heard.waiting + (samples.held if samples.ready else 0.0)
        ) / policy.concurrency
    by_memory = (
        None if heard.kv_usage is None else samples.ready * heard.kv_usage / policy.target_kv_cache_usage
    )
    asked_for = max(by_load, by_memory or 0.0) + heard.missing
    keep_s = policy.scale_down_window_s or LONGEST_WINDOW_S
    history = history.with_peak(now, asked_for, keep_s, every_s=min(PEAK_EVERY_S, history.window_s / 10))
    situation = Situation(policy, samples, heard, found, by_memory, history, now)
    wish = grow(situation) or shrink_or_keep(situation)
    signals = Signals(
        running=heard.running,
        waiting=heard.waiting,
        held=samples.held,
        missing=heard.missing,
        kv_usage=heard.kv_usage,
        arrivals_per_s=None if found is None else found.per_s,
        service_s=None if found is None else found.service_s,
        by_load=by_load,
        by_memory=by_memory,
        window_s=history.window_s,
    )
    replicas = policy.bounded(wish.replicas)
    return Decision(replicas, wish.rule, wish.reason, True, signals, _note(samples, history, wish, now))


def _hold_blind(policy: Policy, samples: Samples, heard: Heard, history: History) -> Decision:
    """More than half the replicas are silent: change nothing, and do not take what follows for one watching."""
    kept = policy.bounded(samples.desired)
    reason = f"held at {kept}: {heard.missing} of {samples.ready} replicas give no metrics"
    signals = Signals(held=samples.held, missing=heard.missing, window_s=history.window_s)
    return Decision(kept, Rule.METRICS, reason, False, signals, replace(history, seen=None, points=()))


def _learn(policy: Policy, samples: Samples, history: History, now: float) -> History:
    """Keep the window within its bounds; a shrink that was not regretted within the longest halves it."""
    shortest, longest = policy.window_s(samples.start_s)
    window_s = min(max(history.window_s, shortest), longest)
    shrunk_at = history.shrunk_at
    if shrunk_at is not None and now - shrunk_at > longest:
        window_s, shrunk_at = max(shortest, window_s / 2), None
    grown = tuple((at, count) for at, count in history.grown if at > now - SURGE_S)
    return replace(history, window_s=window_s, shrunk_at=shrunk_at, grown=grown)


def _note(samples: Samples, history: History, wish: Wish, now: float) -> History:
    """Remember a change. One that grows again what was shrunk says that the window was too short: it doubles."""
    if wish.replicas > samples.desired:
        regretted = history.shrunk_at is not None
        return replace(
            history,
            grown=(*history.grown, (now, samples.desired)),
            window_s=history.window_s * 2 if regretted else history.window_s,
            shrunk_at=None,
        )
    if wish.rule is Rule.SHRINK:
        return replace(history, shrunk_at=now, shrunk_last=now)
    return history
