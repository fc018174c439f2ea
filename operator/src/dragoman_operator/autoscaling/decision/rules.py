"""Rules. Scaling up is immediate; scaling down is delayed: an unnecessary start costs less than missing capacity."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dragoman_operator.autoscaling.decision.observation import (
    CANCEL_AFTER_S,
    FULL_RATIO,
    REFUSED_RATIO,
    SURPLUS,
    TOLERANCE,
    Demand,
    ScrapedReplicas,
    arrivals_after_rise_per_s,
    longest_service_s,
)
from dragoman_operator.autoscaling.decision.values import (
    Expected,
    History,
    Policy,
    Proposal,
    ReplicaSample,
    Rule,
    Samples,
    count_of,
)

SURGE_S = 60.0
SURGE_FACTOR, SURGE_REPLICAS = 10, 16
"""Maximum within a minute: ten times the replicas before, or sixteen more, so that a wrong measurement cannot request
a thousand GPUs. HPA's default, four doublings a minute, is similar."""


@dataclass(frozen=True, slots=True)
class Context:
    """Input of a rule.

    Attributes:
        by_kv_cache: Replicas required by KV cache usage, not rounded; None without that metric.
        history: With this tick in it.
    """

    policy: Policy
    samples: Samples
    scraped: ScrapedReplicas
    demand: Demand | None
    by_kv_cache: float | None
    history: History
    now: float

    @property
    def in_flight(self) -> float:
        """Requests running, waiting or queued at routers."""
        return self.scraped.running + self.scraped.waiting + self.samples.queued


def scale_up(context: Context) -> Proposal | None:
    """The highest proposal, if it is above the current number of replicas."""
    samples = context.samples
    there = max(samples.desired, samples.ready + samples.pending)
    proposals = [_load(context, there), _kv_cache(context, there)]
    if not samples.ready:
        proposals.append(_from_zero(context))
    elif context.demand is not None:
        proposals += [forecast(context, context.demand, there), _objective(context)]
    best = max(
        (proposal for proposal in proposals if proposal),
        key=lambda proposal: proposal.replicas,
        default=None,
    )
    if best is None or best.replicas <= there:
        return None
    best = _limited(context, best)
    return best if best.replicas > samples.desired else None


def _load(context: Context, there: int) -> Proposal | None:
    """Enough replicas for the target concurrency: by the demand, or by requests in flight while it is unknown."""
    policy, demand = context.policy, context.demand
    if demand is not None:
        at_once = demand.lower_bound_per_s * demand.service_s
        what = f"{describe_arrivals(demand.lower_bound_per_s, demand.service_s)} are {at_once:.0f} at once"
    elif context.samples.ready:
        at_once = context.in_flight
        what = f"{at_once:.0f} requests are running or waiting"
    else:
        return None
    required = at_once / policy.concurrency
    if required <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(required)
    return Proposal(replicas, Rule.LOAD, f"{count_of(replicas)}: {what}, at {policy.concurrency:g} a replica")


def _kv_cache(context: Context, there: int) -> Proposal | None:
    """Enough replicas for the target KV cache usage."""
    required = context.by_kv_cache
    if required is None or required <= there * (1 + TOLERANCE):
        return None
    replicas = round_up(required)
    reason = (
        f"{count_of(replicas)}: the KV caches are {context.scraped.kv_usage:.0%} full, "
        f"the target is {context.policy.target_kv_cache_usage:.0%}"
    )
    return Proposal(replicas, Rule.KV_CACHE, reason)


def _objective(context: Context) -> Proposal | None:
    """The replicas that the objective needs; see `objective`."""
    kept = context.history.kept
    if kept <= 1:
        return None
    expected = describe_expected(context.history.expected, context.policy.target_queue_time_s)
    return Proposal(kept, Rule.OBJECTIVE, f"{count_of(kept)} for bursts: {expected}")


def describe_expected(expected: tuple[Expected, ...], target_queue_time_s: float) -> str | None:
    """What is expected, in words; None before the first replay."""
    if not expected:
        return None
    first, *fewer = expected
    late = percent(first.late_ratio)
    text = f"with {count_of(first.replicas)}, {late} of requests would wait over {target_queue_time_s:g} s"
    return text + "".join(f"; with {each.replicas}, {percent(each.late_ratio)}" for each in fewer)


def percent(ratio: float) -> str:
    """A ratio for a reason: 0.43%, 12%, under 0.01%."""
    return "under 0.01%" if 0 < ratio < 0.0001 else f"{100 * ratio:.2g}%"


def _from_zero(context: Context) -> Proposal | None:
    """Scale from zero: enough replicas for the queued requests, at most one more than the arrival rate keeps busy."""
    samples, policy, demand = context.samples, context.policy, context.demand
    if samples.desired or samples.queued <= 0:
        return None
    replicas = max(1, round_up(samples.queued / policy.concurrency))
    if demand is not None:
        busy = round_up(demand.lower_bound_per_s * demand.service_s / (FULL_RATIO * policy.max_num_seqs))
        replicas = min(replicas, 1 + busy)
    return Proposal(
        replicas,
        Rule.FROM_ZERO,
        f"{count_of(replicas)}: {samples.queued:.0f} requests are queued at the routers",
    )


def _limited(context: Context, proposal: Proposal) -> Proposal:
    """Limited to the maximum, and to the scale-up limit of one minute."""
    highest = context.policy.max_replicas
    if proposal.replicas > highest:
        proposal = Proposal(highest, proposal.rule, f"{proposal.reason}; maxReplicas is {highest}")
    began = min([context.samples.desired, *(count for _, count in context.history.scale_ups)])
    surge = max(SURGE_FACTOR * began, began + SURGE_REPLICAS)
    if proposal.replicas > surge:
        return Proposal(
            surge, Rule.LIMIT, f"{proposal.reason}; limited to {surge} within a minute, from {began}"
        )
    return proposal


def forecast(context: Context, demand: Demand, there: int) -> Proposal | None:
    """Replicas so that new requests are not queued by the time another replica is ready; None if `there` suffice.

    Replicas above the target queue time, or with a full queue, are not counted as capacity. The arrival rate is the
    current one, that of the trend after a startup time, or that of a rise if rises are extrapolated.
    """
    policy, start_s = context.policy, context.samples.start_s
    per_s = demand.lower_bound_per_s
    if demand.trend is not None:
        per_s = max(per_s, demand.trend.forecast(context.now, start_s + policy.tick_s))
    if context.history.extrapolates:
        per_s = max(per_s, arrivals_after_rise_per_s(context.history.points, start_s + policy.tick_s))
    late = policy.target_queue_time_s * policy.max_num_seqs / demand.service_s
    full = sum(1 for sample in context.scraped.samples if _refuses(sample))
    behind = sum(1 for sample in context.scraped.samples if sample.waiting > late or _refuses(sample))
    at_once = per_s * demand.service_s
    others = round_up(at_once / (FULL_RATIO * policy.max_num_seqs))
    work = describe_arrivals(per_s, demand.service_s)
    if behind:
        others = round_up(SURPLUS * at_once / (FULL_RATIO * policy.max_num_seqs))
        what = "refuse requests" if full else f"have a queue time above {policy.target_queue_time_s:g} s"
        if 0 < full < behind:
            what = f"have a queue time above {policy.target_queue_time_s:g} s or refuse requests"
        reason = (
            f"{count_of(behind + others)}: {behind} of {context.samples.ready} {what}, "
            f"and {work} require {others} others"
        )
        return Proposal(behind + others, Rule.BACKLOG, reason)
    if at_once <= policy.max_num_seqs * there:
        return None
    return Proposal(
        others, Rule.TREND, f"{count_of(others)}: arrivals reach {work} by the time another is ready"
    )


def _refuses(sample: ReplicaSample) -> bool:
    """Whether a replica's queue is full: it refuses requests, which therefore do not count as arrivals."""
    refused, finished = sample.refused_per_s or 0.0, sample.finished_per_s or 0.0
    return sample.waiting > 0 and refused > REFUSED_RATIO * (refused + finished)


def describe_arrivals(per_s: float, service_s: float) -> str:
    """Arrivals as text."""
    return f"{per_s:.3g} requests/s of {service_s:.2g} s each"


def round_up(replicas: float) -> int:
    """The next integer, tolerating floating-point error."""
    return math.ceil(replicas - 1e-9)


MIN_INTERVAL_S = 60.0
"""At most one scale-down a minute, by as many replicas as the window allows."""

MIN_CHANGE_RATIO = 0.03
"""Minimum change, as a ratio of the replicas."""

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
    """Not below a number that was requested in `spec.replicas` within the window."""
    history, requested = context.history, context.history.requested
    if requested is None or requested.at < context.now - history.window_s:
        return proposal
    kept = min(context.samples.desired, context.policy.bounded(int(requested.replicas)))
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
    window_s = history.window_s
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


def duration(time_s: float) -> str:
    """A time for a reason."""
    return f"{time_s:.0f} s" if time_s < 120 else f"{time_s / 60:.0f} min"


def _required_soon(context: Context, there: int) -> int:
    """Replicas that would be required again immediately: for a queue, or for increasing arrivals."""
    demand = context.demand
    if demand is None:
        return 0
    # As long as the requests of a moment ago took: fewer replicas are fuller, and slower.
    service_s = max(demand.service_s, longest_service_s(context.history.points))
    proposal = forecast(context, replace(demand, service_s=service_s), there)
    replicas = 0 if proposal is None else proposal.replicas
    if demand.trend is not None:
        coming = demand.trend.forecast(context.now, context.samples.start_s) * demand.service_s
        replicas = max(replicas, round_up(coming / context.policy.concurrency))
    return replicas
