"""What another size of one deployment would cost: its load replayed with other replicas, maxNumSeqs and start-up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dragoman.command_line import markdown
from dragoman_contract.models import DEFAULT_MAX_NUM_SEQS
from dragoman_simulate.errors import SimulateError
from dragoman_simulate.exact import ExactFleet
from dragoman_simulate.policies.dragoman import Dragoman
from dragoman_simulate.replay import replay
from dragoman_simulate.speed import SpeedTable
from dragoman_simulate.trace import Trace
from dragoman_simulate.view import TARGET_UTILISATION, FleetPolicy, ScalingLimits, View

HOUR_S = 3600
MAX_REQUESTS = 200_000
"""Of a replay without a trace: it is shortened rather than slow."""

DEFAULT_TARGET_WAIT_S = 2.0
DEFAULT_OBJECTIVE = "95%"
DEFAULT_START_UP_S = 120.0
"""As the operator assumes before it has measured one."""

UNITS_S = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Size:
    """A deployment's size, as it is or might be.

    Attributes:
        replicas: At the start; they stay where `is_autoscaled` is not set.
    """

    title: str
    replicas: int
    is_autoscaled: bool
    limits: ScalingLimits


@dataclass(frozen=True)
class Prediction:
    """What a size leads to.

    Attributes:
        replicas_mean: Ready, starting and draining ones over time.
        over_target_share: Of requests that wait for a slot longer than the target, 0 to 1.
        latency_p50_s, latency_p95_s: From arrival to answer.
    """

    size: Size
    replicas_mean: float
    over_target_share: float
    latency_p50_s: float
    latency_p95_s: float


class Fixed:
    """A rule that always wants the same number."""

    tick_s = 60

    def __init__(self, replicas: int) -> None:
        self._replicas = replicas

    def decide(self, _view: View) -> int:
        """See `FleetPolicy.decide`."""
        return self._replicas


def size_of(manifest: Mapping[str, Any], kv_cache_tokens: int, start_up_s: float | None = None) -> Size:
    """A TranslationDeployment's size, from its spec and status.

    Args:
        manifest: The object.
        kv_cache_tokens: Of one pod.
        start_up_s: Instead of the measured one.

    Raises:
        SimulateError: It runs no replica.
    """
    spec, status = manifest["spec"], manifest.get("status") or {}
    scaling, found = spec.get("autoscaling"), status.get("scaling") or {}
    replicas = int(status.get("desiredReplicas") or spec.get("replicas", 1))
    if replicas < 1:
        raise SimulateError(f"{manifest['metadata']['name']} has no replicas: nothing is measured")
    is_autoscaled = scaling is not None and scaling.get("mode", "Internal") == "Internal"
    seats = int(spec.get("engine", {}).get("maxNumSeqs", DEFAULT_MAX_NUM_SEQS))
    targets = scaling or {}
    measured = found.get("timeToReadySeconds") or DEFAULT_START_UP_S
    limits = ScalingLimits(
        minimum=int(targets.get("minReplicas", 1)) if is_autoscaled else replicas,
        maximum=int(targets.get("maxReplicas") or replicas) if is_autoscaled else replicas,
        max_num_seqs=seats,
        target_concurrency=float(targets.get("targetConcurrency") or max(1.0, TARGET_UTILISATION * seats)),
        target_wait_s=duration_s(targets.get("targetQueueTime")) or DEFAULT_TARGET_WAIT_S,
        start_up_s=float(start_up_s or measured),
        kv_cache_tokens=kv_cache_tokens,
        idle_s=float(targets.get("idleSeconds", 900)),
        tick_s=5.0,
        objective=float(targets.get("objective", DEFAULT_OBJECTIVE).removesuffix("%")) / 100,
    )
    return Size("as it is", replicas, is_autoscaled, limits)


def duration_s(text: str | None) -> float | None:
    """Seconds of a duration such as 2s, 1m or 1h; None of none."""
    return None if not text else float(text[:-1]) * UNITS_S[text[-1]]


def sizes(now: Size, max_num_seqs: int | None, start_up_s: float | None) -> list[Size]:
    """The size as it is, and others: a replica less, another maxNumSeqs, a shorter start-up.

    Args:
        now: As it is.
        max_num_seqs: The other one; None: half and twice.
        start_up_s: The shorter one; None: half.
    """
    found = [now]
    if now.is_autoscaled:
        found.append(replace(now, title=f"{replicas_of(now.replicas)}, not autoscaled", is_autoscaled=False))
    if now.replicas > 1:
        title = (
            f"{replicas_of(now.replicas - 1)}, not autoscaled"
            if now.is_autoscaled
            else replicas_of(now.replicas - 1)
        )
        found.append(replace(now, title=title, replicas=now.replicas - 1, is_autoscaled=False))
    share = now.limits.target_concurrency / now.limits.max_num_seqs
    seats = now.limits.max_num_seqs
    for other in (max_num_seqs,) if max_num_seqs else (max(1, seats // 2), 2 * seats):
        limits = replace(now.limits, max_num_seqs=other, target_concurrency=max(1.0, share * other))
        found.append(replace(now, title=f"maxNumSeqs {other}", limits=limits))
    if now.is_autoscaled:
        shorter = start_up_s or now.limits.start_up_s / 2
        limits = replace(now.limits, start_up_s=shorter)
        found.append(replace(now, title=f"start-up {shorter:g} s", limits=limits))
    return found


def replicas_of(count: int) -> str:
    """The number in words."""
    return f"{count} replica" if count == 1 else f"{count} replicas"


def steady(rate_per_s: float, source_tokens: float, target_tokens: float, seed: int = 7) -> Trace:
    """An hour of arrivals at random (Poisson) at this rate; less where that would be too many requests."""
    seconds = max(60, min(HOUR_S, round(MAX_REQUESTS / max(rate_per_s, 1e-9))))
    counts = np.random.default_rng(seed).poisson(rate_per_s, seconds).astype(float)
    sizes_ = (np.full(seconds, source_tokens), np.full(seconds, target_tokens))
    return Trace(f"{rate_per_s:.3g} requests/s at random", counts, *sizes_)


def predicted(size: Size, trace: Trace, speed: SpeedTable, spread: float) -> Prediction:
    """Replay a load on a deployment of this size.

    Args:
        size: The size.
        trace: The load.
        speed: Of one pod.
        spread: Deviation of a request's output tokens over their mean.
    """
    fleet = ExactFleet(size.limits, speed, size.replicas, spread=spread)
    policy: FleetPolicy = Dragoman(size.limits) if size.is_autoscaled else Fixed(size.replicas)
    outcome = replay(trace, policy, fleet, size.limits)
    p50, p95 = fleet.latencies.percentiles((0.5, 0.95))
    mean = fleet.replica_seconds / trace.duration_s
    return Prediction(size, mean, outcome.over_target_share, p50, p95)


def table(predictions: list[Prediction]) -> str:
    """One line per size."""
    rows = [
        (
            each.size.title,
            f"{each.replicas_mean:.2f}",
            f"{each.over_target_share:.2%}",
            f"{each.latency_p50_s:.2f}",
            f"{each.latency_p95_s:.2f}",
        )
        for each in predictions
    ]
    target = f"wait over {predictions[0].size.limits.target_wait_s:g} s"
    return markdown(("size", "replicas", target, "p50 s", "p95 s"), rows)
