"""What the rules share, and those of scale-up, which is immediate: missing capacity costs more than a start."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dragoman_operator.autoscaling.decision.observation import (
    FULL_RATIO,
    REFUSED_RATIO,
    SURPLUS,
    TOLERANCE,
    Demand,
    ScrapedReplicas,
)
from dragoman_operator.autoscaling.decision.rises import arrivals_after_rise_per_s, extrapolates
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
    def window_s(self) -> float:
        """Stabilization window."""
        return self.policy.window_s(self.samples.start_s)

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
    if extrapolates(context.history):
        per_s = max(per_s, arrivals_after_rise_per_s(context.history.points, start_s + policy.tick_s))
    late = policy.target_queue_time_s * policy.max_num_seqs / demand.service_s
    full = sum(1 for sample in context.scraped.samples if _refuses(sample))
    behind = sum(1 for sample in context.scraped.samples if sample.waiting > late or _refuses(sample))
    if behind:
        # A queue is no chance: the lower bound of few arrivals is 0.
        per_s = max(per_s, demand.per_s)
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


def duration(time_s: float) -> str:
    """A time for a reason."""
    return f"{time_s:.0f} s" if time_s < 120 else f"{time_s / 60:.0f} min"
