"""The scaling decision: a pure function of metrics and history, and its values.

The caller keeps the history that `recommend` returns and passes it to the next call; `dragoman simulate` replays
traffic against it. `docs/autoscaling.md` describes the rules and their effect.
"""

from dragoman_operator.autoscaling.decision.history import History
from dragoman_operator.autoscaling.decision.policy import Policy
from dragoman_operator.autoscaling.decision.recommend import recommend
from dragoman_operator.autoscaling.decision.request import request
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
    "request",
]
