"""Which setting to try next, and when to stop: a pure function.

As the team of the original system tuned by hand: start at one sequence, double, and stop where throughput and tail
get no better. `decide` does so first for `max_num_seqs`, then, at the best of those, for `max_num_batched_tokens`.
All it knows is the trials so far, so a sweep that was interrupted goes on where it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class EngineSetting:
    """What is tuned.

    Args:
        max_num_batched_tokens: Tokens per engine step; at least as many.
    """

    max_num_seqs: int
    max_num_batched_tokens: int


@dataclass(frozen=True)
class Trial:
    """A setting and what it did.

    Args:
        requests_per_s: Throughput; 0 where it failed.
        p95_s: 95th percentile of the times of all requests; None where more than 5% of them got no answer.
        failed: Why nothing could be measured, such as too little memory; None where it was.
        unanswered_ratio: Share of requests without an answer, such as those that a full queue refused.
    """

    setting: EngineSetting
    requests_per_s: float
    p95_s: float | None
    failed: str | None = None
    unanswered_ratio: float = 0.0


@dataclass(frozen=True)
class Goal:
    """The goal of a sweep.

    Args:
        slo_p95_s: Longest 95th percentile that is still good.
        in_flight: Requests at all times; sequences beyond them stay idle.
        first_tokens: Tokens per step while sequences are tuned.
        pays_ratio: Gain in throughput that is worth another step; below it, noise is mistaken for gain.
        patience: Steps in a row that do not pay before the sweep of sequences stops.
        same_ratio: Throughputs this close count as equal, and the smaller setting wins: it needs less memory
            and its batches are shorter.
    """

    slo_p95_s: float
    in_flight: int
    first_tokens: int = 8192
    min_tokens: int = 2048
    max_tokens: int = 16384
    pays_ratio: float = 0.03
    patience: int = 2
    same_ratio: float = 0.01


@dataclass(frozen=True)
class Try:
    """Measure this next."""

    setting: EngineSetting
    why: str


@dataclass(frozen=True)
class Stop:
    """Enough is known.

    Args:
        best: The trial to recommend; None where none keeps the SLO.
    """

    best: Trial | None
    why: str


def decide(trials: Sequence[Trial], policy: Goal) -> Try | Stop:
    """The next step of a sweep."""
    sequences = sorted(
        (trial for trial in trials if trial.setting.max_num_batched_tokens == policy.first_tokens),
        key=lambda trial: trial.setting,
    )
    if not sequences:
        return Try(EngineSetting(1, policy.first_tokens), "the smallest, to begin with")
    ended = _sequences_end(sequences, policy)
    if ended is None:
        doubled = 2 * sequences[-1].setting.max_num_seqs
        return Try(EngineSetting(doubled, policy.first_tokens), "twice the sequences")
    leader = best(sequences, policy) or _quickest(sequences)
    if leader is None:
        return Stop(None, _nothing(sequences, policy))
    step = _tokens_step(leader, trials, policy)
    if step is not None:
        return step
    return _stop(trials, policy, ended)


def best(trials: Sequence[Trial], policy: Goal) -> Trial | None:
    """The smallest setting among the fastest that keep the SLO; None where none does."""
    good = [t for t in trials if t.failed is None and t.p95_s is not None and t.p95_s <= policy.slo_p95_s]
    if not good:
        return None
    most = max(trial.requests_per_s for trial in good)
    same = [trial for trial in good if trial.requests_per_s >= most * (1 - policy.same_ratio)]
    return min(same, key=lambda trial: trial.setting)


def _sequences_end(ascending: Sequence[Trial], policy: Goal) -> str | None:
    """Why more sequences need no trial; None where they do."""
    last = ascending[-1]
    count = last.setting.max_num_seqs
    if last.failed is not None:
        return f"{count} sequences do not run: {last.failed}"
    if count >= policy.in_flight:
        return f"{count} sequences hold all {policy.in_flight} requests in flight"
    if 2 * count > policy.first_tokens:
        return f"a step of {policy.first_tokens} tokens has no room for more than {count} sequences"
    if len(ascending) > policy.patience:
        reference = max(trial.requests_per_s for trial in ascending[: -policy.patience])
        if all(
            trial.requests_per_s < reference * (1 + policy.pays_ratio)
            for trial in ascending[-policy.patience :]
        ):
            kept = ascending[-policy.patience - 1].setting.max_num_seqs
            return f"beyond {kept} sequences throughput no longer grows by {policy.pays_ratio:.0%}"
    if len(ascending) > 1 and _breaks(last, policy) and _slower(last, ascending[-2]):
        return f"at {count} sequences the tail breaks the SLO and grows"
    return None


def _tokens_step(leader: Trial, trials: Sequence[Trial], policy: Goal) -> Try | None:
    """Twice or half the tokens per step at the leader's sequences, while that pays."""
    sequences = leader.setting.max_num_seqs
    known = {
        trial.setting.max_num_batched_tokens: trial
        for trial in trials
        if trial.setting.max_num_seqs == sequences
    }
    for factor, word in ((2.0, "twice"), (0.5, "half")):
        at, here = policy.first_tokens, known[policy.first_tokens]
        while True:
            following = int(at * factor)
            if not max(policy.min_tokens, sequences) <= following <= policy.max_tokens:
                break
            tried = known.get(following)
            if tried is None:
                return Try(EngineSetting(sequences, following), f"{word} the tokens per step")
            if not _pays(tried, here, policy):
                break
            at, here = following, tried
        if at != policy.first_tokens:
            # More pays: fewer would not.
            break
    return None


def _stop(trials: Sequence[Trial], policy: Goal, ended: str) -> Stop:
    found = best(trials, policy)
    if found is not None:
        return Stop(found, ended)
    quickest = _quickest(trials)
    assert quickest is not None
    return Stop(
        None,
        f"no setting keeps p95 within {policy.slo_p95_s:g} s at {policy.in_flight} requests in flight; the lowest "
        f"is {quickest.p95_s:.2f} s with {quickest.setting.max_num_seqs} sequences: send fewer to a replica",
    )


def _nothing(sequences: Sequence[Trial], policy: Goal) -> str:
    ran = [trial for trial in sequences if trial.failed is None]
    if not ran:
        return f"no setting could be measured: {sequences[-1].failed}"
    least = min(ran, key=lambda trial: trial.unanswered_ratio)
    return (
        f"no setting answers 95% of requests with {policy.in_flight} in flight; "
        f"{least.setting.max_num_seqs} sequences leave {least.unanswered_ratio:.0%} without an answer: "
        "send fewer to a replica, or let more wait with --max-queued-sequences"
    )


def _pays(trial: Trial, than: Trial, policy: Goal) -> bool:
    return trial.failed is None and trial.requests_per_s >= than.requests_per_s * (1 + policy.pays_ratio)


def _breaks(trial: Trial, policy: Goal) -> bool:
    return trial.p95_s is None or trial.p95_s > policy.slo_p95_s


def _slower(trial: Trial, than: Trial) -> bool:
    return trial.p95_s is not None and than.p95_s is not None and trial.p95_s >= than.p95_s


def _quickest(trials: Sequence[Trial]) -> Trial | None:
    answered = [trial for trial in trials if trial.p95_s is not None]
    return min(answered, key=lambda trial: trial.p95_s or 0.0) if answered else None
