"""Which pods leave first when there are to be fewer: those that are least busy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.observed.engine_pods import EnginePod

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet chooses among ready pods: the cheapest goes first.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

MOST = 2_147_483_647
"""The highest cost that Kubernetes takes."""


def deletion_costs(pods: Iterable[EnginePod], heard: Mapping[str, ReplicaSample]) -> dict[str, int]:
    """What to write on each pod, by its name: the requests that it has.

    A pod that said nothing may have any number of them, and goes last. One that is not ready goes first whatever
    its cost.

    Args:
        pods: All pods of one deployment.
        heard: Samples by uid; those without a time count as none.
    """
    return {pod.name: _cost(heard.get(pod.uid)) for pod in pods}


def _cost(sample: ReplicaSample | None) -> int:
    if sample is None or sample.at is None:
        return MOST
    return min(round(sample.running + sample.waiting), MOST - 1)
