"""The scaling decision, from samples, policy and history, or from a request in `spec.replicas`; pure."""

from __future__ import annotations

from dataclasses import replace

from dragoman_operator.autoscaling.decision.objective import with_kept
from dragoman_operator.autoscaling.decision.observation import (
    STALE_TICKS,
    ScrapedReplicas,
    collect,
    demand,
    record,
)
from dragoman_operator.autoscaling.decision.rules import (
    SURGE_S,
    Context,
    describe_expected,
    duration,
    round_up,
    scale_up,
)
from dragoman_operator.autoscaling.decision.scale_down import scale_down_or_keep
from dragoman_operator.autoscaling.decision.values import (
    PEAK_EVERY_S,
    Decision,
    History,
    Peak,
    Policy,
    Proposal,
    Rule,
    Samples,
    Signals,
    count_of,
)


def recommend(policy: Policy, samples: Samples, history: History, now: float) -> Decision:
    """The number of replicas now.

    Pure: equal arguments give equal results, and the order of the samples does not matter.

    Args:
        policy: Bounds and targets.
        samples: State of the deployment.
        history: What the last call returned; `History()` at first.
        now: Unix seconds, never less than at the last call.

    Returns:
        The number, between the policy's bounds, with its reason and the history for the next call.
    """
    scraped = collect(samples, policy, now)
    recent = tuple((at, count) for at, count in history.scale_ups if at > now - SURGE_S)
    history = replace(history, scale_ups=recent, start_s=samples.start_s)
    if scraped.missing * 2 > samples.ready:
        return _keep_without_metrics(policy, samples, scraped, history)
    history = record(history, samples, scraped, policy, now)
    found = demand(history, scraped)
    if found is not None:
        by_load = found.per_s * found.service_s / policy.concurrency
        history = replace(history, service_s=found.service_s)
    else:  # requests queued for replicas that start do not measure how many are needed
        by_load = (
            scraped.running + scraped.waiting + (samples.queued if samples.ready else 0.0)
        ) / policy.concurrency
    history = with_kept(history, policy, None if found is None else found.service_s, now)
    by_kv_cache = (
        None if scraped.kv_usage is None else samples.ready * scraped.kv_usage / policy.target_kv_cache_usage
    )
    required = max(by_load, by_kv_cache or 0.0) + scraped.missing
    window_s = policy.window_s(samples.start_s)
    history = history.with_peak(now, required, window_s + policy.tick_s, min(PEAK_EVERY_S, window_s / 10))
    context = Context(policy, samples, scraped, found, by_kv_cache, history, now)
    proposal = scale_up(context) or scale_down_or_keep(context)
    signals = Signals(
        running=scraped.running,
        waiting=scraped.waiting,
        missing=scraped.missing,
        kv_usage=scraped.kv_usage,
        arrivals_per_s=None if found is None else found.per_s,
        service_s=None if found is None else found.service_s,
        by_load=by_load,
        by_kv_cache=by_kv_cache,
        window_s=window_s,
        expected=history.expected,
        expectation=describe_expected(history.expected, policy.target_queue_time_s),
    )
    replicas = policy.bounded(proposal.replicas)
    return Decision(
        replicas,
        proposal.rule,
        proposal.reason,
        True,
        signals,
        _record_change(samples, history, proposal, now),
    )


def _keep_without_metrics(
    policy: Policy, samples: Samples, scraped: ScrapedReplicas, history: History
) -> Decision:
    """More than half of the replicas do not report: keep their number, and interrupt the observation."""
    kept = policy.bounded(samples.desired)
    reason = f"kept at {count_of(kept)}: {scraped.missing} of {samples.ready} report no metrics"
    signals = Signals(missing=scraped.missing, window_s=policy.window_s(samples.start_s))
    return Decision(kept, Rule.METRICS, reason, False, signals, replace(history, seen=None, points=()))


def _record_change(samples: Samples, history: History, proposal: Proposal, now: float) -> History:
    """Record a change."""
    if proposal.replicas > samples.desired:
        return replace(history, scale_ups=(*history.scale_ups, (now, samples.desired)))
    if proposal.rule is Rule.SCALE_DOWN:
        return replace(history, last_scale_down=now)
    return history


def request(
    policy: Policy, history: History, desired: int, requested: int, now: float
) -> tuple[Proposal, History]:
    """The number of replicas after a user or another controller wrote `spec.replicas` in mode Internal.

    A higher number is used at once, and kept for a stabilization window. A lower one is used as far as the load
    of the window allows; nothing changes if the window was not observed.

    Returns:
        The number with its reason, and the history for the next decision.
    """
    replicas = policy.bounded(requested)
    reason = f"{requested} requested in spec.replicas"
    if replicas != requested:
        reason += f", minReplicas is {policy.min_replicas} and maxReplicas {policy.max_replicas}"
    if replicas >= desired:
        proposal = Proposal(replicas, Rule.REQUESTED, f"{count_of(replicas)}: {reason}")
        return proposal, replace(history, requested=Peak(now, replicas))
    history = replace(history, requested=None)
    window_s = policy.window_s(history.start_s)
    if problem := _not_observed(policy, history, now, window_s):
        kept = policy.bounded(desired)
        return Proposal(kept, Rule.REQUESTED, f"kept at {kept}: {reason}, but {problem}"), history
    peak = history.peak(now - window_s - policy.tick_s / 2)
    replicas = min(desired, policy.bounded(max(replicas, round_up(peak), history.kept)))
    reason += f"; the load required at most {peak:.1f} replicas in the last {duration(window_s)}"
    return Proposal(replicas, Rule.REQUESTED, f"{count_of(replicas)}: {reason}"), history


def _not_observed(policy: Policy, history: History, now: float, window_s: float) -> str | None:
    """Why the load of the window is not known; None if it is."""
    seen, since = history.seen, history.observed_since
    if seen is None or since is None or now - seen.at > STALE_TICKS * policy.tick_s:
        return "the load is not known"
    if seen.missing:
        return f"{seen.missing} of {seen.ready} report no metrics"
    if now - since < window_s - policy.tick_s / 2:
        return f"observed for {duration(now - since)} of the {duration(window_s)} stabilization window"
    return None
