"""How many replicas there should be, from what their queues say: a pure function and the values it takes.

Whoever calls `recommend` at every tick keeps the history that it returns; `dragoman simulate` replays traffic
against it. `docs/autoscaling.md` tells the rules and what each is worth.
"""

from dragoman_operator.autoscaling.decision.history import History
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.samples import (
    Decision,
    ReplicaSample,
    Rule,
    Samples,
    Signals,
    TotalLoad,
)

__all__ = [
    "Decision",
    "History",
    "Policy",
    "ReplicaSample",
    "Rule",
    "Samples",
    "Signals",
    "TotalLoad",
    "recommend",
]
