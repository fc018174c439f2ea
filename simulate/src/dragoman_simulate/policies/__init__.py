"""Our autoscaler and re-implementations of the published rules of four others.

Each is written from the rule's documentation and source, whose links stand in its docstring; none of their code
is here. All see the same figures at the moment they decide, which flatters those that in a cluster see them
through a scrape interval.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from dragoman_simulate.policies.dragoman import Dragoman
from dragoman_simulate.policies.hpa import ConcurrencyHpa
from dragoman_simulate.policies.keda import Keda
from dragoman_simulate.policies.kpa import Kpa
from dragoman_simulate.policies.llm_d import LlmD
from dragoman_simulate.view import FleetPolicy, ScalingLimits

POLICIES: dict[str, Callable[[ScalingLimits], FleetPolicy]] = {
    "dragoman": Dragoman,
    "hpa": ConcurrencyHpa,
    "keda": Keda,
    "kpa": Kpa,
    "llm-d": LlmD,
}
"""Every policy by the name that `--policy` knows."""


@dataclass(frozen=True)
class Knob:
    """What a user of a rule sets to spend more or less.

    Attributes:
        values: What is tried, the rule's default among them.
        make: The rule with a value.
    """

    values: tuple[float, ...]
    make: Callable[[ScalingLimits, float], FleetPolicy]


_RATIOS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.3)
_OBJECTIVES = (
    *(0.3, 0.5, 0.65, 0.75, 0.82, 0.88, 0.92, 0.95, 0.97, 0.98, 0.99, 0.993, 0.995, 0.997, 0.998, 0.999),
    *(0.9993, 0.9995, 0.9996, 0.9997, 0.9998, 0.9999, 0.99999),
)
KNOBS: dict[str, Knob] = {
    "dragoman": Knob(_OBJECTIVES, lambda limits, ratio: Dragoman(replace(limits, objective=ratio))),
    "hpa": Knob(
        _RATIOS,
        lambda limits, ratio: ConcurrencyHpa(replace(limits, target_concurrency=ratio * limits.max_num_seqs)),
    ),
    "keda": Knob((0.5, 1, 2, 5, 10, 20, 40), Keda),
    "kpa": Knob(_RATIOS, Kpa),
    "llm-d": Knob((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85, 1.0), LlmD),
}
"""Of each policy: objective, target concurrency over maxNumSeqs, waiting requests per replica, target utilization,
threshold of scaling up. What they share, such as the bounds and the start-up time, is in `ScalingLimits`."""
