"""Pods that start are kept from Karpenter, which otherwise moves a pod that has loaded its model for minutes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from dragoman_contract.kubernetes import GROUP
from dragoman_kube.client import KubeClient
from dragoman_kube.errors import ConflictError, NotFoundError, RefusedError, UnavailableError
from dragoman_kube.kinds import POD, Kind
from dragoman_kube.objects import annotations_of, is_true, key_of
from dragoman_operator.api.labels import ENGINE_CONTAINER
from dragoman_operator.observed.snapshot import Manifest, is_live

log = logging.getLogger(__name__)

NODE_POOL = Kind("karpenter.sh/v1", "NodePool", "nodepools")
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
"""Annotation of pods. Source: https://karpenter.sh/docs/concepts/disruption/#pod-level-controls"""
OURS = f"{GROUP}/do-not-disrupt-until-ready"
"""Annotation of pods whose `DO_NOT_DISRUPT` is the operator's, not that of `podTemplate`."""


class DisruptionGuard:
    """Annotates pods that start, in a cluster with Karpenter, and removes the annotation once they are ready.

    Without the permission to patch pods they stay as they are.
    """

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._has_karpenter: bool | None = None

    async def __call__(self, pods: Iterable[Manifest]) -> None:
        """Annotate the pods of one deployment."""
        changes = [(pod, change) for pod in pods if (change := change_of(pod))]
        if not changes:
            return
        try:
            if self._has_karpenter is None:
                self._has_karpenter = await self._kube.serves(NODE_POOL)
            for pod, change in changes if self._has_karpenter else ():
                await self._kube.merge(POD, key_of(pod), {"metadata": {"annotations": dict(change)}})
        except (RefusedError, NotFoundError, ConflictError, UnavailableError) as error:
            log.info("%s; Karpenter may end pods that start", error)


def change_of(pod: Manifest) -> Mapping[str, str | None]:
    """The annotations to change; None removes one."""
    found = annotations_of(pod)
    if is_true(pod, "Ready"):
        return {DO_NOT_DISRUPT: None, OURS: None} if OURS in found else {}
    # A replica that is unready later, such as an overloaded one, may move.
    if is_live(pod) and DO_NOT_DISRUPT not in found and not _has_started(pod):
        return {DO_NOT_DISRUPT: "true", OURS: "true"}
    return {}


def _has_started(pod: Manifest) -> bool:
    containers: Iterable[Mapping[str, Any]] = (pod.get("status") or {}).get("containerStatuses") or ()
    return any(each.get("started") for each in containers if each.get("name") == ENGINE_CONTAINER)
