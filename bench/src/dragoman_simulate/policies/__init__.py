"""Our autoscaler and re-implementations of the published rules of four others.

Each is written from the rule's documentation and source, whose links stand in its docstring; none of their code
is here. All see the same figures at the moment they decide, which flatters those that in a cluster see them
through a scrape interval.
"""

from __future__ import annotations

from collections.abc import Callable

from dragoman_simulate.policies.dragoman import Dragoman
from dragoman_simulate.policies.hpa import ConcurrencyHpa
from dragoman_simulate.policies.keda import Keda
from dragoman_simulate.policies.kpa import Kpa
from dragoman_simulate.policies.llm_d import LlmD
from dragoman_simulate.view import Limits, Policy

POLICIES: dict[str, Callable[[Limits], Policy]] = {
    "dragoman": Dragoman,
    "hpa": ConcurrencyHpa,
    "keda": Keda,
    "kpa": Kpa,
    "llm-d": LlmD,
}
"""Every policy by the name that `--policy` knows."""
