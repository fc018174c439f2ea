"""In mode Internal the operator writes its decision to `spec.replicas`, as HPA and KEDA do."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from dragoman_kube.client import KubeClient
from dragoman_kube.errors import RefusedError
from dragoman_kube.objects import Key, key_of
from dragoman_operator.observed.snapshot import TRANSLATION_DEPLOYMENT, Manifest

log = logging.getLogger(__name__)

REWRITE_EVERY_S = 60.0
"""The same number is written once in this time: another client, such as a GitOps controller, may keep changing it."""


class SpecReplicas:
    """Writes `spec.replicas` through the scale subresource."""

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
