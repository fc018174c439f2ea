"""What autoscaling writes: the decision to `spec.replicas`, as HPA and KEDA do, and the order of termination."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Iterable

import aiohttp

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import NotFoundError, RefusedError
from dragoman_kube.kinds import POD
from dragoman_kube.objects import Key, annotations_of, key_of, uid_of
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest, engine_pods
from dragoman_operator.scraping.pods import PodMetrics
from dragoman_operator.scraping.values import Reading

log = logging.getLogger(__name__)

REWRITE_EVERY_S = 60.0
"""The same number is written once in this time: another client, such as a GitOps controller, may keep changing it."""


class SpecReplicas:
    """Writes `spec.replicas` through the scale subresource, in mode Internal."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._clock = clock
        self._last: dict[Key, tuple[int, float]] = {}
        """The number that was written or refused last, and when."""
        self._refused: set[Key] = set()

    async def write(self, body: Manifest, current: int, replicas: int) -> tuple[Manifest | None, float]:
        """Write a decision, unless the object has changed since it was read.

        A refusal is logged once; the Deployment still gets the decision.

        Returns:
            The object after the write, None if there was none; and seconds until the next attempt.

        Raises:
            ClusterError: The API server failed, or the object has changed.
        """
        key, metadata = key_of(body), body["metadata"]
        if current == replicas:
            return None, math.inf
        last, at = self._last.get(key, (None, 0.0))
        wait_s = at + REWRITE_EVERY_S - self._clock()
        if last == replicas and wait_s > 0:
            return None, wait_s
        fields = {
            "metadata": {"resourceVersion": metadata["resourceVersion"]},
            "spec": {"replicas": replicas},
        }
        try:
            scale = await self._kube.merge(TRANSLATION_DEPLOYMENT, key, fields, "scale")
        except RefusedError as error:
            if key not in self._refused:
                log.warning("spec.replicas stays at %d: %s", current, error, extra={"key": str(key)})
            self._refused.add(key)
            self._last[key] = replicas, self._clock()
            return None, REWRITE_EVERY_S
        self._refused.discard(key)
        self._last[key] = replicas, self._clock()
        # The response is a Scale. The API server counts a change of the spec in the generation.
        changed = {
            "resourceVersion": scale["metadata"]["resourceVersion"],
            "generation": metadata.get("generation", 1) + 1,
        }
        spec = {**body["spec"], "replicas": replicas}
        return {**body, "metadata": {**metadata, **changed}, "spec": spec}, 0.0

    def forget(self, key: Key) -> None:
        """The object was deleted."""
        self._last.pop(key, None)
        self._refused.discard(key)


DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet orders ready pods: the lowest cost is terminated first.

Source: https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/#pod-deletion-cost
"""

MAX_COST = 2_147_483_647
"""The maximum cost in Kubernetes."""


def deletion_cost(reading: Reading | None) -> int:
    """The number of requests of a pod; the maximum without metrics.

    Pods that are not ready are terminated first, regardless of cost.
    """
    if reading is None:
        return MAX_COST
    return min(round(reading.now.running + reading.now.waiting), MAX_COST - 1)


class DeletionCosts:
    """Sets the deletion cost of pods to their number of requests.

    Args:
        http: The session. Pods are scraped again, because what was read last is up to a tick old.
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
            cost = str(deletion_cost(found.readings.get(pod.uid)))
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
