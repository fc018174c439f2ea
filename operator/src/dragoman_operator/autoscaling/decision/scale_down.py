"""The rules of scale-down, which is delayed: an unnecessary start costs less than missing capacity."""

from __future__ import annotations

from dataclasses import replace

from dragoman_operator.autoscaling.decision.observation import CANCEL_AFTER_S, TOLERANCE
from dragoman_operator.autoscaling.decision.rules import (
    Context,
    describe_expected,
    duration,
    forecast,
    round_up,
)
from dragoman_operator.autoscaling.decision.values import Proposal, Rule, count_of

MIN_INTERVAL_S = 60.0
"""At most one scale-down a minute, by as many replicas as the window allows."""

MIN_CHANGE_RATIO = 0.03
"""Minimum change, as a ratio of the replicas."""

REQUESTED_S = 300.0
"""Minimum time for which a number that a user requested is kept, unless the spec sets the stabilization window."""

STUCK_STARTS, STUCK_S = 3.0, 600.0
"""A replica that has been starting for this many startup times, and for ten minutes, waits for a GPU that the
cluster does not have: it no longer blocks the scale-down of the others."""


def scale_down_or_keep(context: Context) -> Proposal:
    """Fewer replicas if no rule keeps them; else their number, with the rule that keeps them."""
    policy, samples = context.policy, context.samples
    kept = policy.bounded(samples.desired)
    if kept != samples.desired:
        bounds = f"minReplicas is {policy.min_replicas} and maxReplicas {policy.max_replicas}"
        return Proposal(kept, Rule.BOUNDS, f"{count_of(kept)}: {bounds}")
    if not samples.ready:
        reason = f"kept at {kept}: no replica is ready yet" if kept else "0 replicas: no requests"
        return Proposal(kept, Rule.STARTING if kept else Rule.IDLE, reason)
    missing = context.scraped.missing
    if missing:
        reason = f"kept at {count_of(kept)}: {missing} of {samples.ready} report no metrics"
        return Proposal(kept, Rule.METRICS, reason)
    if samples.pending and samples.pending_s < max(STUCK_S, STUCK_STARTS * samples.start_s):
        starting = f"{samples.pending} {'is' if samples.pending == 1 else 'are'} starting"
        keep = Proposal(kept, Rule.STARTING, f"kept at {kept}: {starting}")
        return _keep_requested(context, _cancel_starts(context, kept) or keep)
    return _keep_requested(context, _idle(context) or _scale_down(context, kept))


def _keep_requested(context: Context, proposal: Proposal) -> Proposal:
    """Not below a number that was requested in `spec.replicas` recently."""
    policy, requested = context.policy, context.history.requested
    keep_s = policy.scale_down_window_s or max(REQUESTED_S, context.window_s)
    if requested is None or requested.at < context.now - keep_s:
        return proposal
    kept = min(context.samples.desired, policy.bounded(int(requested.replicas)))
    if proposal.replicas >= kept:
        return proposal
    reason = f"kept at {kept}: requested in spec.replicas {duration(context.now - requested.at)} ago"
    return Proposal(kept, Rule.STABILIZED if kept == context.samples.desired else proposal.rule, reason)


def _idle(context: Context) -> Proposal | None:
    """Zero, if that is allowed and there were no requests for `idle_s`."""
    policy, last_request_at = context.policy, context.history.last_request_at
    if policy.min_replicas > 0 or last_request_at is None:
        return None
    idle_s = context.now - last_request_at
    if context.in_flight > 0 or context.samples.routers_not_reporting or idle_s < policy.idle_s:
        return None
    return Proposal(0, Rule.IDLE, f"0 replicas: no requests for {idle_s:.0f} s")


def _cancel_starts(context: Context, kept: int) -> Proposal | None:
    """Without the starts that the load no longer requires; None if all of them continue.

    They have not served yet, so the interval between scale-downs does not apply, and none begins.
    """
    samples, history = context.samples, context.history
    slack_s = context.policy.tick_s / 2
    if any(context.now - at < CANCEL_AFTER_S - slack_s for at, _ in history.scale_ups):
        return None
    proposal = _scale_down_to_load(context, kept, max(samples.ready, kept - samples.cancellable))
    return replace(proposal, rule=Rule.CANCELLED) if proposal.replicas < kept else None


def _scale_down(context: Context, kept: int) -> Proposal:
    """The maximum that the load required within the window, once all of it was observed."""
    proposal = _scale_down_to_load(context, kept)
    last, now = context.history.last_scale_down, context.now
    if proposal.replicas < kept and last is not None and now - last < MIN_INTERVAL_S:
        return Proposal(kept, Rule.STABILIZED, f"kept at {kept}: scaled down less than a minute ago")
    return proposal


def _scale_down_to_load(context: Context, kept: int, least: int = 1) -> Proposal:
    """As `_scale_down`, to at least `least`, however recent the last scale-down is."""
    policy, history, now = context.policy, context.history, context.now
    window_s = context.window_s
    slack_s = policy.tick_s / 2  # ticks are not exactly periodic
    peak = history.peak(now - window_s - slack_s)
    required = f"the load required at most {peak:.1f} replicas in the last {duration(window_s)}"
    loaded = max(1, round_up(peak))
    if history.kept > loaded:
        required += f"; {describe_expected(history.expected, policy.target_queue_time_s)}"
    needed = max(loaded, history.kept, least)
    if needed < kept:
        needed = max(needed, _required_soon(context, loaded))
    if needed < policy.min_replicas:
        required += f"; minReplicas is {policy.min_replicas}"
    needed = policy.bounded(needed)
    if kept - needed < max(1.0, MIN_CHANGE_RATIO * kept):
        return Proposal(kept, Rule.STEADY, f"{count_of(kept)}: {required}")
    observed_s = 0.0 if history.observed_since is None else now - history.observed_since
    if observed_s < window_s - slack_s:
        of = f"{duration(observed_s)} of the {duration(window_s)} stabilization window"
        reason = f"kept at {kept}: observed for {of}"
        return Proposal(kept, Rule.STABILIZED, reason)
    return Proposal(needed, Rule.SCALE_DOWN, f"{count_of(needed)}: {required}")


def _required_soon(context: Context, there: int) -> int:
    """Replicas that would be required again immediately: for a queue, or for increasing arrivals."""
    demand, policy = context.demand, context.policy
    if demand is None:
        return 0
    # As long as requests take in full replicas: fewer replicas are fuller, and slower.
    service_s = max(demand.service_s, context.history.busiest_s or 0.0)
    proposal = forecast(context, replace(demand, service_s=service_s), there)
    replicas = 0 if proposal is None else proposal.replicas
    at_once = demand.per_s * service_s
    if demand.trend is not None:
        coming = demand.trend.forecast(context.now, context.samples.start_s) * demand.service_s
        replicas = max(replicas, round_up(coming / policy.concurrency))
    return max(replicas, round_up(at_once / (policy.concurrency * (1 + TOLERANCE))))
