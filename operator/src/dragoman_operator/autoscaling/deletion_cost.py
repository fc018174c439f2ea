"""Order of termination in a scale-down: pods with the fewest requests first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

import aiohttp

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import NotFoundError, RefusedError
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Key
from dragoman_operator.autoscaling.decision.samples import ReplicaSample
from dragoman_operator.autoscaling.sources.pods import PodMetrics
from dragoman_operator.observed.engine_pods import EnginePod, engine_pods
from dragoman_operator.observed.snapshot import Manifest

log = logging.getLogger(__name__)

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet orders ready pods: the lowest cost is terminated first.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

MAX_COST = 2_147_483_647
"""The maximum cost in Kubernetes."""


def deletion_costs(pods: Iterable[EnginePod], found: Mapping[str, ReplicaSample]) -> dict[str, int]:
    """The cost of each pod, by its name: its number of requests.

    A pod without metrics has the maximum cost. Pods that are not ready are terminated first, regardless of cost.
    """
    return {pod.name: _cost(found.get(pod.uid)) for pod in pods}


def _cost(sample: ReplicaSample | None) -> int:
    if sample is None or sample.at is None:
        return MAX_COST
    return min(round(sample.running + sample.waiting), MAX_COST - 1)


class DeletionCosts:
    """Sets the deletion cost of pods to their number of requests.

    Args:
        http: The session. Pods are scraped again, because their last samples are up to a tick old.
        timeout_s: Timeout per pod. A pod that exceeds it counts as the busiest, so this does not depend on the tick.
        seen_s: Seconds for Kubernetes' controllers to observe the costs. They watch pods and replica counts
            separately; one that sees the count first treats a pod without a cost as idle.
    """

    def __init__(
        self, kube: KubeClient, http: aiohttp.ClientSession, timeout_s: float, seen_s: float
    ) -> None:
        self._kube = kube
        self._http = http
        self._timeout_s = timeout_s
        self._seen_s = seen_s

    async def __call__(self, manifests: Iterable[Manifest]) -> None:
        """Write the costs of one deployment's pods that changed.

        Raises:
            ClusterError: The API server failed. A refusal is only logged.
        """
        manifests = list(manifests)
        pods = engine_pods(manifests)
        found = await PodMetrics(self._http, self._timeout_s).read(pods)
        known = {
            pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(DELETION_COST)
            for pod in manifests
        }
        fresh = {
            pod.uid: found.samples[pod.uid] for pod in pods if pod.name not in found.problems and pod.ready
        }
        costs = deletion_costs(pods, fresh)
        changed = {name: cost for name, cost in costs.items() if known[name] != str(cost)}
        namespaces = {pod.name: pod.namespace for pod in pods}
        for name, cost in changed.items():
            annotated = {"metadata": {"annotations": {DELETION_COST: str(cost)}}}
            try:
                await self._kube.merge(POD, Key(namespaces[name], name), annotated)
            except (RefusedError, NotFoundError) as error:
                log.warning("%s; pods are removed in arbitrary order", error)
        if changed:
            await asyncio.sleep(self._seen_s)
