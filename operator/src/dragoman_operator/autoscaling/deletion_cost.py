"""Order of termination in a scale-down: pods with the fewest requests first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import aiohttp

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import NotFoundError, RefusedError
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Key, annotations_of, uid_of
from dragoman_operator.autoscaling.decision.samples import ReplicaSample
from dragoman_operator.autoscaling.sources.pods import PodMetrics
from dragoman_operator.observed.engine_pods import engine_pods
from dragoman_operator.observed.snapshot import Manifest

log = logging.getLogger(__name__)

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet orders ready pods: the lowest cost is terminated first.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

MAX_COST = 2_147_483_647
"""The maximum cost in Kubernetes."""


def deletion_cost(sample: ReplicaSample | None) -> int:
    """The number of requests of a pod; the maximum without metrics.

    Pods that are not ready are terminated first, regardless of cost.
    """
    return MAX_COST if sample is None else min(round(sample.running + sample.waiting), MAX_COST - 1)


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
        annotations = {uid_of(pod): annotations_of(pod) for pod in manifests}
        pods = engine_pods(manifests)
        found = await PodMetrics(self._http, self._timeout_s).read(pods)
        changed = False
        for pod in pods:
            cost = str(deletion_cost(found.samples.get(pod.uid)))
            if annotations[pod.uid].get(DELETION_COST) == cost:
                continue
            changed = True
            try:
                annotated = {"metadata": {"annotations": {DELETION_COST: cost}}}
                await self._kube.merge(POD, Key(pod.namespace, pod.name), annotated)
            except (RefusedError, NotFoundError) as error:
                log.warning("%s; pods are removed in arbitrary order", error)
        if changed:
            await asyncio.sleep(self._seen_s)
