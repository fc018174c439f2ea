"""A number of replicas that a user or another controller wrote to `spec.replicas` in mode Internal; pure."""

from __future__ import annotations

from dataclasses import replace

from dragoman_operator.autoscaling.decision.history import History, Peak
from dragoman_operator.autoscaling.decision.observation import STALE_TICKS
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.samples import Proposal, Rule
from dragoman_operator.autoscaling.decision.scale_down import duration
from dragoman_operator.autoscaling.decision.scale_up import round_up


def request(
    policy: Policy, history: History, desired: int, requested: int, now: float
) -> tuple[Proposal, History]:
    """The number of replicas after a request.

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
        proposal = Proposal(replicas, Rule.REQUESTED, f"{replicas} replicas: {reason}")
        return proposal, replace(history, requested=Peak(now, replicas))
    history = replace(history, requested=None)
    slack_s = policy.tick_s / 2
    if problem := _not_observed(policy, history, now, slack_s):
        kept = policy.bounded(desired)
        return Proposal(kept, Rule.REQUESTED, f"kept at {kept}: {reason}, but {problem}"), history
    peak = history.peak(now - history.window_s - slack_s)
    replicas = min(desired, policy.bounded(max(replicas, round_up(peak))))
    reason += f"; the load required at most {peak:.1f} in the last {duration(history.window_s)}"
    return Proposal(replicas, Rule.REQUESTED, f"{replicas} replicas: {reason}"), history


def _not_observed(policy: Policy, history: History, now: float, slack_s: float) -> str | None:
    """Why the load of the window is not known; None if it is."""
    seen, since = history.seen, history.observed_since
    if seen is None or since is None or now - seen.at > STALE_TICKS * policy.tick_s:
        return "the load is not known"
    if seen.missing:
        return f"{seen.missing} of {seen.ready} report no metrics"
    if now - since < history.window_s - slack_s:
        return (
            f"observed for {duration(now - since)} of the {duration(history.window_s)} stabilization window"
        )
    return None
