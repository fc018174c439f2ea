"""What was seen of the pods of one size over a while: sums by the number of requests in flight, of bounded size.

A look is one pod between two readings of its metrics. Its requests in flight are the mean of both readings, what was
done meanwhile is the difference of the counters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from dragoman_operator.tuning.decision.counters import Counters

LADDER = (
    *(1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072),
    4096,
)
"""Sizes worth choosing between: half as many again or twice, and above eight multiples of it, for which vLLM has
CUDA graphs. Requests in flight are binned by the same steps."""

KV_BINS = 20
"""Of five percent of the KV cache each."""


@dataclass(frozen=True, slots=True)
class Bin:
    """Looks at pods with about as many requests in flight.

    Attributes:
        looks: How many.
        span_s: Their length, added up.
        in_flight_s: Requests in flight × seconds.
        running_s: Sequences in the batch × seconds.
        paced: Looks that tell a pace: tokens for each second that a request spent in the pod, its wait included.
        pace: Its sum over these looks.
        pace_squares: The sum of its squares.
        tokens: Tokens written in these looks.
        token_running_s: Sequences × seconds of these looks.
        decode_s: Seconds between tokens, over all sequences.
        decode_n: Tokens that this was measured on.
    """

    looks: float = 0.0
    span_s: float = 0.0
    in_flight_s: float = 0.0
    running_s: float = 0.0
    paced: float = 0.0
    pace: float = 0.0
    pace_squares: float = 0.0
    tokens: float = 0.0
    token_running_s: float = 0.0
    decode_s: float = 0.0
    decode_n: float = 0.0

    def plus(self, other: Bin) -> Bin:
        """Both together."""
        return Bin(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(Bin)))


@dataclass(frozen=True, slots=True)
class Tally:
    """See the module.

    Attributes:
        began: When it was begun, Unix seconds.
        span_s: Length of all looks together.
        bins: By the step of the ladder that the requests in flight do not exceed; idle looks have none.
        kv: Looks by the share of the KV cache in use, `KV_BINS` of them; all 0 where no pod says it.
        kv_s: Share of the KV cache in use × seconds.
        kv_running_s: Sequences that ran in these looks × seconds.
        finished: Requests.
        lost: Requests that failed or were refused; None where no pod says it.
        queue_s: Seconds that requests waited in queues.
        queue_n: Requests that this was measured on.
        preemptions: Sequences that lost their place; None where no pod says it.
    """

    began: float = 0.0
    span_s: float = 0.0
    bins: Mapping[int, Bin] = field(default_factory=dict)
    kv: tuple[float, ...] = (0.0,) * KV_BINS
    kv_s: float = 0.0
    kv_running_s: float = 0.0
    finished: float = 0.0
    lost: float | None = None
    queue_s: float = 0.0
    queue_n: float = 0.0
    preemptions: float | None = None

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        bins = dict(self.bins)
        for step, one in other.bins.items():
            bins[step] = bins[step].plus(one) if step in bins else one
        return Tally(
            began=min(self.began, other.began),
            span_s=self.span_s + other.span_s,
            bins=dict(sorted(bins.items())),
            kv=tuple(map(sum, zip(self.kv, other.kv, strict=True))),
            kv_s=self.kv_s + other.kv_s,
            kv_running_s=self.kv_running_s + other.kv_running_s,
            finished=self.finished + other.finished,
            lost=_added(self.lost, other.lost),
            queue_s=self.queue_s + other.queue_s,
            queue_n=self.queue_n + other.queue_n,
            preemptions=_added(self.preemptions, other.preemptions),
        )

    def seen(self, before: Counters, now: Counters) -> Tally:
        """With one look more; a counter that fell is that of a restarted engine, and the look tells nothing."""
        span_s = now.at - before.at
        grown = {
            name: _difference(getattr(before, name), getattr(now, name))
            for name in (
                "tokens",
                "decode_s",
                "decode_n",
                "queue_s",
                "queue_n",
                "finished",
                "lost",
                "preemptions",
            )
        }
        if span_s <= 0 or any(more is not None and more < 0 for more in grown.values()):
            return self
        look = Tally(
            began=self.began,
            span_s=span_s,
            bins=_binned(before, now, span_s, grown),
            kv=_kv_binned(now.kv_usage),
            kv_s=(now.kv_usage or 0.0) * span_s,
            kv_running_s=0.0 if now.kv_usage is None else now.running * span_s,
            finished=grown["finished"] or 0.0,
            lost=grown["lost"],
            queue_s=(grown["queue_s"] or 0.0) if grown["queue_n"] else 0.0,
            queue_n=grown["queue_n"] or 0.0,
            preemptions=grown["preemptions"],
        )
        return self.plus(look)

    def rounded(self) -> Tally:
        """With figures of six digits: what more they say is noise, and the status has to carry it."""
        bins = {
            step: Bin(*(_rounded(getattr(one, each.name)) for each in fields(Bin)))
            for step, one in self.bins.items()
        }
        return replace(
            self,
            began=round(self.began, 1),
            span_s=_rounded(self.span_s),
            bins=bins,
            kv_s=_rounded(self.kv_s),
            kv_running_s=_rounded(self.kv_running_s),
            queue_s=_rounded(self.queue_s),
        )

    @property
    def looks(self) -> float:
        """Looks at pods that had requests."""
        return sum(one.looks for one in self.bins.values())


def _binned(
    before: Counters, now: Counters, span_s: float, grown: Mapping[str, float | None]
) -> dict[int, Bin]:
    running = (before.running + now.running) / 2
    in_flight = running + (before.waiting + now.waiting) / 2
    if in_flight <= 0:
        return {}
    tokens, decode_n = grown["tokens"], grown["decode_n"]
    pace = None if tokens is None else tokens / (in_flight * span_s)
    one = Bin(
        looks=1.0,
        span_s=span_s,
        in_flight_s=in_flight * span_s,
        running_s=running * span_s,
        paced=0.0 if pace is None else 1.0,
        pace=pace or 0.0,
        pace_squares=(pace or 0.0) ** 2,
        tokens=tokens or 0.0,
        token_running_s=0.0 if tokens is None else running * span_s,
        decode_s=(grown["decode_s"] or 0.0) if decode_n else 0.0,
        decode_n=decode_n or 0.0,
    )
    return {LADDER[min(bisect_left(LADDER, in_flight), len(LADDER) - 1)]: one}


def _kv_binned(usage: float | None) -> tuple[float, ...]:
    if usage is None:
        return (0.0,) * KV_BINS
    at = min(int(min(max(usage, 0.0), 1.0) * KV_BINS), KV_BINS - 1)
    return tuple(float(step == at) for step in range(KV_BINS))


def _added(one: float | None, other: float | None) -> float | None:
    return other if one is None else one if other is None else one + other


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _difference(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else now - before
