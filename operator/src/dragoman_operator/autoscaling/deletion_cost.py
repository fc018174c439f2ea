"""Which pods leave first when there are to be fewer: those that are least busy."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping

import aiohttp

from dragoman_operator.autoscaling.decision import ReplicaSample
from dragoman_operator.autoscaling.sources.pods import PodMetrics
from dragoman_operator.errors import NotFoundError, RefusedError
from dragoman_operator.kube import Kube
from dragoman_operator.observed.engine_pods import EnginePod, engine_pods
from dragoman_operator.observed.snapshot import POD, Manifest

log = logging.getLogger(__name__)

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


class Leaving:
    """Writes each pod's requests on it as its deletion cost.

    Args:
        kube: The API server.
        http: Pods are asked anew: their last samples are as old as a tick, or were never taken.
        timeout_s: Longest wait for one pod. One that is not waited for counts as the busiest, and a busier one goes in
            its place; so this is as long as pods take that are well, whatever the tick.
        seen_s: Seconds that Kubernetes' controllers get to see what was written. They watch pods and replica counts
            apart, and one that hears of the count first takes a pod without a cost for one that is idle.
    """

    def __init__(self, kube: Kube, http: aiohttp.ClientSession, timeout_s: float, seen_s: float) -> None:
        self._kube = kube
        self._http = http
        self._timeout_s = timeout_s
        self._seen_s = seen_s

    async def __call__(self, manifests: Iterable[Manifest]) -> None:
        """Write the costs that differ from what the pods of one deployment say.

        Raises:
            ClusterError: The API server failed. Its refusal is only logged: then any pod may go.
        """
        manifests = list(manifests)
        pods = engine_pods(manifests)
        heard = await PodMetrics(self._http, self._timeout_s).read(pods)
        known = {
            pod["metadata"]["name"]: (pod["metadata"].get("annotations") or {}).get(DELETION_COST)
            for pod in manifests
        }
        fresh = {
            pod.uid: heard.samples[pod.uid] for pod in pods if pod.name not in heard.problems and pod.ready
        }
        costs = deletion_costs(pods, fresh)
        changed = {name: cost for name, cost in costs.items() if known[name] != str(cost)}
        namespaces = {pod.name: pod.namespace for pod in pods}
        for name, cost in changed.items():
            annotated = {"metadata": {"annotations": {DELETION_COST: str(cost)}}}
            try:
                await self._kube.merge(POD, namespaces[name], name, annotated)
            except (RefusedError, NotFoundError) as error:
                log.warning("%s; any pod may be taken away", error)
        if changed:
            await asyncio.sleep(self._seen_s)
